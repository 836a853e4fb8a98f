# find_package(redlock) reads this file. It defines these targets, if they are installed:
#
#   redlock::redlock   the shared library
#   redlock::static    the static library, with the libraries that it needs
#
# COMPONENTS shared or static names the targets that must be installed. C++ programs use the same
# targets. All paths are relative to this file, which is in LIBDIR/cmake/redlock, so an installed tree
# can be moved. Any CMake from 3.1 on reads this file.

# The path to the headers. If they are elsewhere, the installation writes another path here.
set(_redlock_headers "../../../include")

# Versions with the same interface have the same soname: 0.MINOR below 1.0, MAJOR from then on.
set(_redlock_version "${${CMAKE_FIND_PACKAGE_NAME}_VERSION}")
string(REGEX REPLACE "^(0\\.[0-9]+|[0-9]+).*" "\\1" _redlock_interface "${_redlock_version}")
if(APPLE)
    set(_redlock_shared "libredlock.${_redlock_version}.dylib")
    set(_redlock_soname "@rpath/libredlock.${_redlock_interface}.dylib")
    set(_redlock_needs "-framework Security" "-framework CoreFoundation" "-liconv" "-lm")
else()
    set(_redlock_shared "libredlock.so.${_redlock_version}")
    set(_redlock_soname "libredlock.so.${_redlock_interface}")
    set(_redlock_needs -lutil -lrt -lpthread -lm -ldl)
endif()

# The directory of this file may be reached through a symbolic link: to a whole tree, as with packages
# that link their tree into another one, or to a single directory. The libraries are two directories up.
# If this file was not installed by this project's make, they may be in a sibling of that directory.
get_filename_component(_redlock_real "${CMAKE_CURRENT_LIST_DIR}" REALPATH)
set(_redlock_include)
set(_redlock_lib)
foreach(_redlock_here "${CMAKE_CURRENT_LIST_DIR}" "${_redlock_real}")
    if(IS_ABSOLUTE "${_redlock_headers}")
        set(_redlock_at "${_redlock_headers}")
    else()
        get_filename_component(_redlock_at "${_redlock_here}/${_redlock_headers}" ABSOLUTE)
    endif()
    if(NOT _redlock_include AND EXISTS "${_redlock_at}/redlock.h")
        set(_redlock_include "${_redlock_at}")
    endif()
    foreach(_redlock_way ".." "../${CMAKE_LIBRARY_ARCHITECTURE}" "../../lib64" "../../lib32")
        get_filename_component(_redlock_at "${_redlock_here}/../${_redlock_way}" ABSOLUTE)
        if(NOT _redlock_lib AND (EXISTS "${_redlock_at}/${_redlock_shared}"
                                 OR EXISTS "${_redlock_at}/libredlock.a"))
            set(_redlock_lib "${_redlock_at}")
        endif()
    endforeach()
endforeach()

set(${CMAKE_FIND_PACKAGE_NAME}_FOUND TRUE)
if(NOT _redlock_include OR NOT _redlock_lib)
    set(${CMAKE_FIND_PACKAGE_NAME}_FOUND FALSE)
    set(${CMAKE_FIND_PACKAGE_NAME}_NOT_FOUND_MESSAGE
        "There is no redlock.h or no library for ${CMAKE_CURRENT_LIST_FILE}.")
endif()

if(${CMAKE_FIND_PACKAGE_NAME}_FOUND AND NOT TARGET redlock::redlock
   AND EXISTS "${_redlock_lib}/${_redlock_shared}")
    add_library(redlock::redlock SHARED IMPORTED)
    set_target_properties(redlock::redlock PROPERTIES
        IMPORTED_LOCATION "${_redlock_lib}/${_redlock_shared}"
        IMPORTED_SONAME "${_redlock_soname}"
        INTERFACE_INCLUDE_DIRECTORIES "${_redlock_include}")
endif()

# The libraries are written as options, because a name without a dash could be a target of the program.
if(${CMAKE_FIND_PACKAGE_NAME}_FOUND AND NOT TARGET redlock::static
   AND EXISTS "${_redlock_lib}/libredlock.a")
    add_library(redlock::static STATIC IMPORTED)
    set_target_properties(redlock::static PROPERTIES
        IMPORTED_LOCATION "${_redlock_lib}/libredlock.a"
        IMPORTED_LINK_INTERFACE_LANGUAGES C
        INTERFACE_LINK_LIBRARIES "${_redlock_needs}"
        INTERFACE_INCLUDE_DIRECTORIES "${_redlock_include}")
endif()

set(_redlock_target_of_shared redlock::redlock)
set(_redlock_target_of_static redlock::static)
foreach(_redlock_component ${${CMAKE_FIND_PACKAGE_NAME}_FIND_COMPONENTS})
    set(_redlock_target "${_redlock_target_of_${_redlock_component}}")
    set(${CMAKE_FIND_PACKAGE_NAME}_${_redlock_component}_FOUND FALSE)
    if(_redlock_target AND TARGET "${_redlock_target}")
        set(${CMAKE_FIND_PACKAGE_NAME}_${_redlock_component}_FOUND TRUE)
    elseif(${CMAKE_FIND_PACKAGE_NAME}_FIND_REQUIRED_${_redlock_component})
        set(${CMAKE_FIND_PACKAGE_NAME}_FOUND FALSE)
        set(${CMAKE_FIND_PACKAGE_NAME}_NOT_FOUND_MESSAGE
            "There is no component ${_redlock_component} of redlock here.")
    endif()
endforeach()

foreach(_redlock_name headers version interface shared soname needs real include lib here at way
        target_of_shared target_of_static component target name)
    unset(_redlock_${_redlock_name})
endforeach()
