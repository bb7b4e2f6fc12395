/* One measurement of libxslt: CPU microseconds per document, bytes in to bytes out, printed as one number.
 * cc -O2 libxslt.c $(xml2-config --cflags --libs) $(xslt-config --cflags --libs) -o libxslt
 * libxslt STYLESHEET SOURCE MILLISECONDS */
#include <libxml/parser.h>
#include <libxslt/transform.h>
#include <libxslt/xsltutils.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static void once(xsltStylesheetPtr stylesheet, const char *source, int length)
{
    xmlDocPtr document = xmlReadMemory(source, length, "source.xml", NULL, 0);
    xmlDocPtr result = xsltApplyStylesheet(stylesheet, document, NULL);
    xmlChar *bytes = NULL;
    int count = 0;
    xsltSaveResultToString(&bytes, &count, result, stylesheet);
    xmlFree(bytes);
    xmlFreeDoc(result);
    xmlFreeDoc(document);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: libxslt STYLESHEET SOURCE MILLISECONDS\n");
        return 2;
    }
    xsltStylesheetPtr stylesheet = xsltParseStylesheetFile((const xmlChar *)argv[1]);
    FILE *file = fopen(argv[2], "rb");
    if (!stylesheet || !file)
        return 3;
    fseek(file, 0, SEEK_END);
    long length = ftell(file);
    rewind(file);
    char *source = malloc(length);
    if (!source || fread(source, 1, length, file) != (size_t)length)
        return 3;
    double limit = atof(argv[3]) / 1000;
    for (int run = 0; run < 20; run++)
        once(stylesheet, source, (int)length);
    double started = seconds(CLOCK_MONOTONIC), before = seconds(CLOCK_PROCESS_CPUTIME_ID);
    int runs = 0;
    while (seconds(CLOCK_MONOTONIC) - started < limit) {
        for (int run = 0; run < 20; run++)
            once(stylesheet, source, (int)length);
        runs += 20;
    }
    printf("%.3f\n", (seconds(CLOCK_PROCESS_CPUTIME_ID) - before) * 1e6 / runs);
    return 0;
}
