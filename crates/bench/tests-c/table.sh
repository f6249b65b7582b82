#!/bin/sh
# The table of methods from the file names in a folder, as the real build makes it: table.sh FOLDER.
set -eu
echo '#include "method.h"'
for file in "$1"/*.c; do
    echo "extern const struct wb_method wb_method_$(basename "$file" .c);"
done
echo 'extern const struct wb_method *const wb_methods[];'
echo 'extern const size_t wb_methods_count;'
echo 'const struct wb_method *const wb_methods[] = {'
for file in "$1"/*.c; do
    echo "    &wb_method_$(basename "$file" .c),"
done
echo '};'
echo 'const size_t wb_methods_count = sizeof wb_methods / sizeof wb_methods[0];'
