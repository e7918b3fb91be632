/* SPDX-License-Identifier: MIT
 *
 * The order of what the site's search finds. The numbers are Sphinx's. Pages for users
 * come before those for people who work on Iris. A setting, a status or words of an error
 * lead to their page. */
var Scorer = {
    objNameMatch: 11, objPartialMatch: 6, objPrio: {0: 15, 1: 5, 2: -5}, objPrioDefault: 0,
    title: 15, partialTitle: 7, term: 5, partialTerm: 2,
    score: ([page, title, , , score]) => {
        const query = (new URLSearchParams(window.location.search).get("q") || "").trim();
        const first = [
            [/^IRIS_ERR_/, /^docs\/errors$/], [/^IRIS_[A-Z_]+$/, /^docs\/running$/],
            [/^iris_\w+$/, new RegExp(`^reference/${query}$`)],
            [/^(\S+\s+){3,}\S+$/, /^(reference\/messages|docs\/questions)$/],
        ].find(([words]) => words.test(query));
        if (first && first[1].test(page)) {
            score += 40;
        }
        return score + (/^docs\/(lab|architecture|backends|upstream)|^[A-Z]+$/.test(page) ? -4
            : /^docs\/questions/.test(page) ? 2 : /^docs\//.test(page) ? 1 : 0);
    },
};
