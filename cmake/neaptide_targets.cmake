# neaptide_library(NAME SOURCES ... DEPENDS ... [LIBS ...]): one static library per folder, named neaptide_NAME.
#   DEPENDS: folders (must stand above this one in tools/layers.txt). LIBS: outside libraries, public.
# neaptide_test(NAME SOURCES ... DEPENDS ... [LIBS ...] [LABELS ...] [TIMEOUT s]): one test program per file group.

add_library(neaptide_flags INTERFACE)
target_include_directories(neaptide_flags INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
# g++ 12 warns of overlapping copies in std::string's own operator+ (-Wrestrict); it is wrong.
target_compile_options(neaptide_flags INTERFACE $<BUILD_INTERFACE:-Wall;-Wextra;-Wshadow;-Wconversion;-Werror>
                                                $<BUILD_INTERFACE:$<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>>
                                                $<BUILD_INTERFACE:-ffp-contract=off>)
if(NEAPTIDE_SANITIZE)
  target_compile_options(neaptide_flags INTERFACE -fsanitize=${NEAPTIDE_SANITIZE} -fno-omit-frame-pointer -Wno-error)
  target_link_options(neaptide_flags INTERFACE -fsanitize=${NEAPTIDE_SANITIZE})
endif()

function(neaptide_library NAME)
  cmake_parse_arguments(A "" "" "SOURCES;DEPENDS;LIBS;PRIVATE_LIBS" ${ARGN})
  add_library(neaptide_${NAME} STATIC ${A_SOURCES})
  target_link_libraries(neaptide_${NAME} PRIVATE neaptide_flags)
  target_include_directories(neaptide_${NAME} SYSTEM INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                                               $<INSTALL_INTERFACE:include>)
  foreach(D ${A_DEPENDS})
    target_link_libraries(neaptide_${NAME} PUBLIC neaptide_${D})
  endforeach()
  target_link_libraries(neaptide_${NAME} PUBLIC ${A_LIBS} PRIVATE ${A_PRIVATE_LIBS})
endfunction()

function(neaptide_test NAME)
  cmake_parse_arguments(A "" "TIMEOUT" "SOURCES;DEPENDS;LIBS;LABELS" ${ARGN})
  add_executable(test_${NAME} ${A_SOURCES})
  target_link_libraries(test_${NAME} PRIVATE neaptide_flags GTest::gtest GTest::gmock GTest::gtest_main ${A_LIBS})
  foreach(D ${A_DEPENDS})
    target_link_libraries(test_${NAME} PRIVATE neaptide_${D})
  endforeach()
  target_compile_definitions(test_${NAME} PRIVATE NEAPTIDE_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                                  NEAPTIDE_BUILD_DIR="${PROJECT_BINARY_DIR}")
  add_test(NAME ${NAME} COMMAND test_${NAME})
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 600)
  endif()
  set_tests_properties(${NAME} PROPERTIES TIMEOUT ${A_TIMEOUT})
  if(A_LABELS)
    set_tests_properties(${NAME} PROPERTIES LABELS "${A_LABELS}")
  endif()
endfunction()
