# Checks whether this version satisfies find_package(redlock VERSION). It must not be older than VERSION,
# and must have the same interface. Below 1.0, a minor version may change the interface; from 1.0 on, only
# a major version may. A range, as in 0.1...0.3, is taken literally.

set(PACKAGE_VERSION "0.3.0")
set(PACKAGE_VERSION_COMPATIBLE FALSE)
set(PACKAGE_VERSION_EXACT FALSE)

set(_redlock_interface "^(0\\.[0-9]+|[0-9]+).*")
string(REGEX REPLACE "${_redlock_interface}" "\\1" _redlock_ours "${PACKAGE_VERSION}")
string(REGEX REPLACE "^0$" "0.0" _redlock_asked "${PACKAGE_FIND_VERSION}")
string(REGEX REPLACE "${_redlock_interface}" "\\1" _redlock_asked "${_redlock_asked}")

if(PACKAGE_FIND_VERSION_RANGE)
    if(NOT PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION_MIN
       AND (PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION_MAX
            OR (PACKAGE_FIND_VERSION_RANGE_MAX STREQUAL "INCLUDE"
                AND PACKAGE_VERSION VERSION_EQUAL PACKAGE_FIND_VERSION_MAX)))
        set(PACKAGE_VERSION_COMPATIBLE TRUE)
    endif()
elseif(NOT PACKAGE_VERSION VERSION_LESS "${PACKAGE_FIND_VERSION}"
       AND _redlock_ours VERSION_EQUAL _redlock_asked)
    set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
if(PACKAGE_VERSION VERSION_EQUAL "${PACKAGE_FIND_VERSION}")
    set(PACKAGE_VERSION_EXACT TRUE)
endif()

# A 32-bit library does not suit a 64-bit program, and a 64-bit library does not suit a 32-bit program. The
# fifth byte of an ELF file tells which of the two the file is.
set(_redlock_file "${CMAKE_CURRENT_LIST_DIR}/../../libredlock.so.${PACKAGE_VERSION}")
if(CMAKE_SIZEOF_VOID_P AND EXISTS "${_redlock_file}")
    file(READ "${_redlock_file}" _redlock_class OFFSET 4 LIMIT 1 HEX)
    math(EXPR _redlock_bytes "4 * ${_redlock_class}")
    if(NOT CMAKE_SIZEOF_VOID_P EQUAL _redlock_bytes)
        set(PACKAGE_VERSION_UNSUITABLE TRUE)
    endif()
endif()

foreach(_redlock_name interface ours asked file class bytes name)
    unset(_redlock_${_redlock_name})
endforeach()
