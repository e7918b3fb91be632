/* SPDX-License-Identifier: MIT
 *
 * A curve of times by ranks as an SVG picture.
 */
#include "config.h"

#include "sim_curve.h"

#include <math.h>

#define WIDTH 640
#define HEIGHT 400
#define EDGE 60

/* The ranges of the axes: powers of two for ranks, powers of ten for times. */
struct axes {
    double least_x, most_x, least_y, most_y;
};

static double x_of(const struct axes *axes, double ranks)
{
    return EDGE + (log2(ranks) - axes->least_x) * (WIDTH - 2 * EDGE) /
                      (axes->most_x - axes->least_x);
}

static double y_of(const struct axes *axes, double us)
{
    return HEIGHT - EDGE -
           (log10(us) - axes->least_y) * (HEIGHT - 2 * EDGE) /
               (axes->most_y - axes->least_y);
}

static struct axes axes_of(const struct sim_point *points, size_t count)
{
    struct axes axes = {INFINITY, -INFINITY, INFINITY, -INFINITY};

    for (size_t i = 0; i < count; i++) {
        axes.least_x = fmin(axes.least_x, floor(log2(points[i].ranks)));
        axes.most_x = fmax(axes.most_x, ceil(log2(points[i].ranks)));
        axes.least_y = fmin(axes.least_y, floor(log10(points[i].us)));
        axes.most_y = fmax(axes.most_y, ceil(log10(points[i].us)));
    }
    axes.most_x = fmax(axes.most_x, axes.least_x + 1);
    axes.most_y = fmax(axes.most_y, axes.least_y + 1);
    return axes;
}

static void write_axes(const struct axes *axes, FILE *file)
{
    for (double power = axes->least_x; power <= axes->most_x; power++) {
        fprintf(
            file,
            "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.0f</text>\n",
            x_of(axes, exp2(power)), HEIGHT - EDGE + 18, exp2(power));
    }
    for (double power = axes->least_y; power <= axes->most_y; power++) {
        double y = y_of(axes, pow(10, power));

        fprintf(file,
                "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" "
                "stroke=\"#ddd\"/>\n"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g us</text>\n",
                EDGE, y, WIDTH - EDGE, y, EDGE - 6, y + 4, pow(10, power));
    }
    fprintf(file,
            "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">ranks</text>\n",
            WIDTH / 2, HEIGHT - EDGE + 40);
}

static void write_text(const char *text, FILE *file)
{
    for (; *text != '\0'; text++) {
        if (*text == '<' || *text == '&') {
            fprintf(file, "&#%d;", *text);
        } else {
            fputc(*text, file);
        }
    }
}

void sim_curve_write(const char *title, const struct sim_point *points,
                     size_t count, FILE *file)
{
    struct axes axes = axes_of(points, count);

    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
            "height=\"%d\" font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
            "<text x=\"%d\" y=\"30\" text-anchor=\"middle\" "
            "font-size=\"14\">",
            WIDTH, HEIGHT, WIDTH / 2);
    write_text(title, file);
    fprintf(file, "</text>\n");
    write_axes(&axes, file);
    fprintf(file, "<polyline fill=\"none\" stroke=\"#1565c0\" "
                  "stroke-width=\"2\" points=\"");
    for (size_t i = 0; i < count; i++) {
        fprintf(file, "%.1f,%.1f ", x_of(&axes, points[i].ranks),
                y_of(&axes, points[i].us));
    }
    fprintf(file, "\"/>\n</svg>\n");
}
