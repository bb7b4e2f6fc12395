/* One measurement of libxml2: CPU microseconds per document, printed as one number.
 * libxml2 parse|write SOURCE MILLISECONDS; see parse.py beside this file. */
#include <libxml/parser.h>
#include <libxml/tree.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    FILE *file = fopen(argv[2], "rb");
    if (!file) return 3;
    static char bytes[1 << 22];
    int length = (int)fread(bytes, 1, sizeof bytes, file);
    int write = strcmp(argv[1], "write") == 0;
    double limit = atof(argv[3]) / 1e3, started = now(CLOCK_MONOTONIC), before = now(CLOCK_PROCESS_CPUTIME_ID);
    xmlDocPtr kept = xmlReadMemory(bytes, length, "source", NULL, 0);
    long runs = 0;
    while (now(CLOCK_MONOTONIC) - started < limit) {
        for (int i = 0; i < 20; i++, runs++) {
            if (write) {
                xmlChar *out;
                int size;
                xmlDocDumpMemory(kept, &out, &size);
                xmlFree(out);
            } else {
                xmlFreeDoc(xmlReadMemory(bytes, length, "source", NULL, 0));
            }
        }
    }
    printf("%.3f\n", (now(CLOCK_PROCESS_CPUTIME_ID) - before) * 1e6 / runs);
    return 0;
}
