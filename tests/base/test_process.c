/* SPDX-License-Identifier: MIT
 *
 * A process's own id, which is kept: children never get their parent's, whether
 * the C library forks them or a system call does.
 */
#include "config.h"

#include "support/harness.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"

static int is_right(void)
{
    return iris_i_process_id() == (int)getpid() &&
           iris_i_process_id() == (int)getpid();
}

static pid_t fork_by_library(void)
{
    return fork();
}

/* Without what fork() does besides, such as the handlers of pthread_atfork. */
static pid_t fork_by_system_call(void)
{
#ifdef __s390__ /* the stack is the first argument there */
    return (pid_t)syscall(SYS_clone, 0, SIGCHLD, 0, 0, 0);
#else
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
#endif
}

/* In a child of a child, too. */
static void check_children(pid_t (*make)(void))
{
    pid_t pid;
    int how = -1;

    assert_true(is_right());
    pid = make();
    assert_true(pid >= 0);
    if (pid == 0) {
        int right = is_right();
        pid_t child = make();

        if (child == 0) {
            _exit(is_right() ? 0 : 1);
        }
        _exit(right && waitpid(child, &how, 0) == child && how == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_int_equal(how, 0);
    assert_true(is_right());
}

static TEST(forked_children_have_their_own)
{
    check_children(fork_by_library);
}

static TEST(children_of_a_system_call_have_their_own)
{
    check_children(fork_by_system_call);
}

TEST_GROUP_WITH(NULL, NULL, unit);
