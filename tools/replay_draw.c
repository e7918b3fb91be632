/* SPDX-License-Identifier: MIT
 *
 * Draws the table as a picture. Time goes down, each workgroup has a vertical
 * line, and arrows go from writes to the reads that saw them.
 */
#include "config.h"

#include "replay_rows.h"

#include <errno.h>
#include <string.h>

#define ROW 30 /* pixels */
#define TOP 58
#define LEFT 44
#define LETTER 7.3 /* the largest width of a letter */
#define GAP 32     /* beside a box, on each side */

struct drawing {
    const struct replay_rows *rows;
    FILE *file;
    double column; /* the width of a column */
};

static void put_text(FILE *file, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '<':
            fputs("&lt;", file);
            break;
        case '>':
            fputs("&gt;", file);
            break;
        case '&':
            fputs("&amp;", file);
            break;
        default:
            fputc(*text, file);
        }
    }
}

static double x_of(const struct drawing *d, size_t column)
{
    return LEFT + d->column * ((double)column + 0.5);
}

static double y_of(size_t row)
{
    return TOP + ROW * ((double)row + 0.5);
}

/* Draws an arrow from a write to column `column` at row `to`, beside the boxes. */
static void draw_arrow(const struct drawing *d, size_t from, size_t column,
                       double to, const char *class)
{
    double start = x_of(d, d->rows->rows[from].column);
    double end = x_of(d, column), half = d->column / 2 - GAP;
    double sign = end > start ? 1 : -1;

    fprintf(d->file,
            "<path class=\"%s\" d=\"M%.1f %.1fL%.1f %.1f\" "
            "marker-end=\"url(#%s)\"/>\n",
            class, start + sign * half, y_of(from), end - sign * (half + 2), to,
            class);
}

static void draw_row(const struct drawing *d, size_t number)
{
    const struct replay_row *row = &d->rows->rows[number];
    double x = x_of(d, row->column), y = y_of(number);
    bool is_old = row->missed != REPLAY_NEVER || row->is_race;
    char text[512];

    fprintf(d->file, "<text class=\"dim\" x=\"%d\" y=\"%.1f\">%zu</text>\n", 12,
            y + 4, number + 1);
    fprintf(d->file,
            "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
            "height=\"%d\" rx=\"4\"/>\n",
            is_old            ? "old"
            : row->op->writes ? "write"
                              : "read",
            x - d->column / 2 + GAP, y - 11, d->column - 2 * GAP, 22);
    replay_describe_cell(row, text, sizeof text);
    fprintf(d->file,
            "<text class=\"code\" x=\"%.1f\" y=\"%.1f\" "
            "text-anchor=\"middle\">",
            x, y + 4);
    put_text(d->file, text);
    replay_describe_row(d->rows, number, text, sizeof text);
    fprintf(d->file, "</text>\n<text class=\"dim\" x=\"%.1f\" y=\"%.1f\">",
            LEFT + d->column * (double)d->rows->num_columns + 12, y + 4);
    put_text(d->file, text);
    fprintf(d->file, "</text>\n");
}

static void draw_arrows(const struct drawing *d)
{
    for (size_t i = 0; i < d->rows->num_rows; i++) {
        const struct replay_row *row = &d->rows->rows[i];

        if (row->from != REPLAY_NEVER) {
            draw_arrow(d, row->from, row->column, y_of(i), "seen");
        }
        if (row->late != REPLAY_NEVER && row->seen == REPLAY_NEVER &&
            d->rows->rows[row->late].column != row->column) {
            draw_arrow(d, i, d->rows->rows[row->late].column,
                       y_of(d->rows->num_rows), "late");
        }
    }
}

static void draw_columns(const struct drawing *d)
{
    char text[64];

    for (size_t i = 0; i < d->rows->num_columns; i++) {
        replay_describe_column(d->rows, i, text, sizeof text);
        fprintf(d->file,
                "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n"
                "<path class=\"line\" d=\"M%.1f %dV%.1f\"/>\n",
                x_of(d, i), TOP - 14, text, x_of(d, i), TOP - 6,
                y_of(d->rows->num_rows));
    }
}

/* The sizes of letters are not known here, so this leaves enough room for the
 * widest texts. */
static void measure(struct drawing *d, double *width_p)
{
    size_t cell = 8, row = 20;
    char text[512];

    for (size_t i = 0; i < d->rows->num_columns; i++) {
        replay_describe_column(d->rows, i, text, sizeof text);
        cell = strlen(text) > cell ? strlen(text) : cell;
    }
    for (size_t i = 0; i < d->rows->num_rows; i++) {
        replay_describe_cell(&d->rows->rows[i], text, sizeof text);
        cell = strlen(text) > cell ? strlen(text) : cell;
        replay_describe_row(d->rows, i, text, sizeof text);
        row = strlen(text) > row ? strlen(text) : row;
    }
    d->column = LETTER * (double)cell + 16 + 2 * GAP;
    *width_p = LEFT + d->column * (double)d->rows->num_columns +
               LETTER * (double)row + 24;
}

/* Not all programs that show pictures know variables of CSS. */
static const char style[] =
    "<style>\n"
    "text{font:13px system-ui,sans-serif;fill:#1f2328}\n"
    ".code{font-family:ui-monospace,monospace;font-size:12px}\n"
    ".dim{fill:#656d76;font-size:12px}\n"
    ".paper{fill:#fff}\n"
    ".line{stroke:#d8dee4;stroke-width:2}\n"
    ".write{fill:#ddf4ff;stroke:#54aeff}\n"
    ".read{fill:#f3f5f8;stroke:#afb8c1}\n"
    ".old{fill:#ffebe9;stroke:#cf222e}\n"
    ".seen{stroke:#0969da;stroke-width:1.5;fill:none}\n"
    ".late{stroke:#cf222e;stroke-width:1.5;stroke-dasharray:5 4;fill:none}\n"
    "#seen path{fill:#0969da}#late path{fill:#cf222e}\n"
    "@media(prefers-color-scheme:dark){\n"
    "text{fill:#e6edf3}.dim{fill:#8d96a0}.paper{fill:#0d1117}\n"
    ".line{stroke:#30363d}.write{fill:#0c2d6b;stroke:#1f6feb}\n"
    ".read{fill:#161b22;stroke:#484f58}.old{fill:#67060c;stroke:#ff7b72}\n"
    ".seen{stroke:#58a6ff}.late{stroke:#ff7b72}\n"
    "#seen path{fill:#58a6ff}#late path{fill:#ff7b72}}\n"
    "</style>\n";

static void draw(struct drawing *d)
{
    static const char marker[] =
        "<marker id=\"%s\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" "
        "markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\" "
        "markerUnits=\"userSpaceOnUse\"><path d=\"M0 0L8 4L0 8z\"/></marker>\n";
    double width, height = y_of(d->rows->num_rows) + 22;

    measure(d, &width);
    fprintf(d->file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f "
            "%.0f\" width=\"%.0f\" height=\"%.0f\">\n"
            "<title>Iris: operations in the order in which they ran</title>\n",
            width, height, width, height);
    fputs(style, d->file);
    fprintf(d->file, marker, "seen");
    fprintf(d->file, marker, "late");
    fputs("<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n", d->file);
    draw_columns(d);
    if (d->rows->left_out != 0) {
        fprintf(d->file,
                "<text class=\"dim\" x=\"12\" y=\"20\">%zu other operations "
                "are left out</text>\n",
                d->rows->left_out);
    }
    draw_arrows(d); /* behind the boxes of columns in between */
    for (size_t i = 0; i < d->rows->num_rows; i++) {
        draw_row(d, i);
    }
    fputs("</svg>\n", d->file);
}

int replay_draw(const struct replay_rows *rows, const char *path)
{
    struct drawing d = {.rows = rows, .file = fopen(path, "we")};
    bool failed = d.file == NULL;

    if (!failed) {
        draw(&d);
        failed = ferror(d.file) != 0;
        failed |= fclose(d.file) != 0;
    }
    if (failed) {
        fprintf(stderr, "iris-replay: cannot write %s: %s\n", path,
                strerror(errno));
    }
    return failed ? -1 : 0;
}
