/* One measurement of libxml2's schema validator: CPU microseconds per document that is parsed already, as one number.
 * libxml2-schema SCHEMA SOURCE MILLISECONDS; see validate.py beside this file. */
#include <libxml/parser.h>
#include <libxml/xmlschemas.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    xmlSchemaPtr schema = xmlSchemaParse(xmlSchemaNewParserCtxt(argv[1]));
    xmlDocPtr document = xmlReadFile(argv[2], NULL, 0);
    if (!schema || !document) return 3;
    xmlSchemaValidCtxtPtr context = xmlSchemaNewValidCtxt(schema);
    double limit = atof(argv[3]) / 1e3, started = now(CLOCK_MONOTONIC), before = now(CLOCK_PROCESS_CPUTIME_ID);
    long runs = 0;
    while (now(CLOCK_MONOTONIC) - started < limit)
        for (int i = 0; i < 20; i++, runs++)
            if (xmlSchemaValidateDoc(context, document) != 0) return 1;
    printf("%.3f\n", (now(CLOCK_PROCESS_CPUTIME_ID) - before) * 1e6 / runs);
    return 0;
}
