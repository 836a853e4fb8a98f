# Whether this is the version that find_package(redlock VERSION) asks for: one that is not older and
# has the same interface, which a minor version may change below 1.0, and a major one from then on.
# A range, as in 0.1...0.3, is taken by its word.

set(PACKAGE_VERSION "0.2.0")
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

# A library of 32 bits does not suit a program of 64, nor the other way round. An ELF file says in its
# fifth byte which it is.
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
