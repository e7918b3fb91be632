# SPDX-License-Identifier: MIT
"""A stranger on the network of a job of several hosts; see strangers.sh.

flood NETNS=IP...       attacks each port that appears in the namespaces; says when it has
                       looked at all of them
record FILE             records all packets of this namespace
check FILE SECRET JOB   the recording has no secret and no key of the job
replay FILE IP PORT     sends the recorded bytes of a rank to rank 0
prove IP PORT SECRET JOB  proves the secret, as a rank would
"""
import hashlib
import hmac
import os
import random
import socket
import struct
import subprocess
import sys
import time

MANY = 50
GREETING, CLAIM, ANSWER = 40, 137, 98


def mac(key, data):
    return hmac.new(key, data, "sha256").digest()


def keys(secret, job):
    """The job's secret as the library has it, and the rendezvous's key."""
    own = mac(secret.encode(), hashlib.sha256(("job-" + job).encode()).digest())
    return own, mac(own, b"rendezvous")


def listeners(netns):
    text = subprocess.run(["nsenter", "--net=/run/netns/" + netns, "cat", "/proc/net/tcp"],
                          capture_output=True, text=True).stdout
    rows = [line.split() for line in text.splitlines()[1:]]
    return {int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A"}


def half_open(raw, ip, port):
    """A SYN from an address that never answers."""
    source = socket.inet_aton("10.77.0.200")
    head = struct.pack("!HHIIBBHHH", random.randrange(1024, 65535), port,
                       random.getrandbits(32), 0, 5 << 4, 2, 1024, 0, 0)
    pseudo = source + socket.inet_aton(ip) + struct.pack("!BBH", 0, 6, len(head))
    words = struct.unpack("!%dH" % ((len(pseudo) + len(head)) // 2), pseudo + head)
    total = sum(words)
    total = (total & 0xffff) + (total >> 16)
    total = ~(total + (total >> 16)) & 0xffff
    head = head[:16] + struct.pack("!H", total) + head[18:]
    packet = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(head), random.getrandbits(16), 0, 64, 6, 0)
    raw.sendto(packet + source + socket.inet_aton(ip) + head, (ip, 0))


def flood(hosts):
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    seen, held = set(), []
    while True:
        for netns, ip in (host.split("=") for host in hosts):
            for port in listeners(netns):
                if (ip, port) in seen:
                    continue
                seen.add((ip, port))
                for i in range(MANY):
                    half_open(raw, ip, port)
                    for words in (b"", b"irisprf1", os.urandom(4096)):
                        s = socket.socket()
                        s.settimeout(2)
                        try:
                            s.connect((ip, port))
                            s.send(words)
                        except OSError:
                            pass
                        held.append(s)
                print("attacked", ip, port, flush=True)
        print("looked", flush=True)
        time.sleep(0.05)


def record(path):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    with open(path, "wb", buffering=0) as file:
        print("records", flush=True)
        while True:
            data = s.recv(65536)
            file.write(struct.pack("!I", len(data)) + data)


def packets(path):
    with open(path, "rb") as file:
        data = file.read()
    while len(data) >= 4:
        size, = struct.unpack("!I", data[:4])
        yield data[4:4 + size]
        data = data[4 + size:]


def payloads(path, port):
    """What one connection has sent to the port, in order."""
    streams = {}
    for packet in packets(path):
        if packet[12:14] != b"\x08\0" or packet[23] != 6:
            continue
        total, = struct.unpack("!H", packet[16:18])
        segment = packet[34:14 + total]
        source, to, seq = struct.unpack("!HHI", segment[:8])
        body = segment[(segment[12] >> 4) * 4:]
        if to == port and body:
            streams.setdefault(source, {})[seq] = body
    return [b"".join(body for _, body in sorted(parts.items())) for parts in streams.values()]


def check(path, secret, job):
    everything = b"".join(packets(path))
    if b"irisprf1" not in everything:
        sys.exit("the recording has no handshake")
    for name, value in zip(("text", "secret", "key"), (secret.encode(), *keys(secret, job))):
        if value in everything or value.hex().encode() in everything:
            sys.exit("the recording has the " + name)


def receive(s, most):
    data = b""
    while len(data) < most:
        part = s.recv(most - len(data))
        if not part:
            break
        data += part
    return data


def replay(path, ip, port):
    for sent in payloads(path, int(port)):
        if len(sent) < CLAIM:
            continue
        with socket.create_connection((ip, int(port)), timeout=20) as s:
            receive(s, GREETING)
            s.sendall(sent)
            try:  # a side that closes with unread data resets the connection
                answer = receive(s, ANSWER)
                answer += receive(s, 1)
            except ConnectionResetError:
                answer = b""
        if answer not in (b"", bytes(ANSWER)):
            sys.exit("rank 0 said: %r" % answer)
        print("replayed", len(sent), "bytes")
        return
    sys.exit("the recording has no claim")


def prove(ip, port, secret, job):
    key = keys(secret, job)[1]
    with socket.create_connection((ip, int(port)), timeout=20) as s:
        greeting = receive(s, GREETING)
        own = os.urandom(32)
        claims = struct.pack("<iiQQQ", 1, 2, 7, 0, 0)
        claims = bytes([len(claims)]) + claims.ljust(64, b"\0")
        code = mac(key, b"connector\0" + greeting[8:] + own + claims)
        s.sendall(b"irisprf1" + own + claims + code)
        answer = receive(s, ANSWER)
        right = mac(key, b"acceptor\0\0" + greeting[8:] + own + claims + answer[:66])
        if answer[:1] != b"\1" or answer[66:] != right:
            sys.exit("rank 0 said: %r" % answer)


mode, *rest = sys.argv[1:]
if mode == "flood":
    flood(rest)
{"record": record, "check": check, "replay": replay, "prove": prove}[mode](*rest)
