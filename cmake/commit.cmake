# Script (cmake -P): writes OUT, a C file with the commit that SOURCE is at, "-dirty" behind it where a tracked file was
# changed, "" where there is no repository. An unchanged file stays, so that nothing is built for it.
cmake_policy(VERSION 3.24)
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=40 --exclude=* OUTPUT_VARIABLE commit
                ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
file(CONFIGURE OUTPUT ${OUT} CONTENT
     "#include \"bench/core/objects.h\"\nconst char *const eng_objects_commit = \"@commit@\";\n" @ONLY)
