# find_package(kesco): kesco_target() has the CUDA sources of a target rewritten by kesco while they are compiled.
#
#   find_package(kesco REQUIRED)
#   add_executable(app app.cu)
#   kesco_target(app)                       # as many streams as the work is wide
#   kesco_target(app STREAMS 4)             # at most four
#   kesco_target(app GRAPH)                 # graphs for work that runs again and again
#   kesco_target(app FIKIT)                 # with hooks around launches, for 'kesco fikit run'
#
# Nothing but the target's CUDA compiler launcher is set. A source that kesco cannot rewrite is compiled as it is.
#
# With -DKESCO_CHECK=ON nothing is rewritten: these targets are built for 'kesco check -- ./app', with the shared CUDA
# runtime, lines and no optimisation on the host's side.
option(KESCO_CHECK "Build the targets of kesco_target() for 'kesco check -- ./app'" OFF)
find_program(KESCO_LAUNCH kesco-launch
  HINTS "${CMAKE_CURRENT_LIST_DIR}/../../../bin" "${CMAKE_CURRENT_LIST_DIR}/../../../../../bin"
  DOC "kesco-launch, which stands in front of the CUDA compiler")
mark_as_advanced(KESCO_LAUNCH)

set(kesco_FOUND TRUE)
if(NOT KESCO_LAUNCH)
  set(kesco_FOUND FALSE)
  set(kesco_NOT_FOUND_MESSAGE "there is no kesco-launch: pip install kesco, or set KESCO_LAUNCH")
endif()

function(kesco_target target)
  cmake_parse_arguments(PARSE_ARGV 1 given "GRAPH;FIKIT" "STREAMS" "")
  if(NOT TARGET ${target})
    message(FATAL_ERROR "kesco_target: there is no target '${target}'")
  endif()
  if(given_UNPARSED_ARGUMENTS OR given_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "kesco_target(${target}): write [STREAMS n] [GRAPH] [FIKIT], not "
      "'${given_UNPARSED_ARGUMENTS}${given_KEYWORDS_MISSING_VALUES}'")
  endif()
  get_target_property(launcher ${target} CUDA_COMPILER_LAUNCHER)
  if(launcher)
    message(FATAL_ERROR "kesco_target(${target}): its CUDA sources have a compiler launcher already (${launcher}); "
      "to use both, take kesco-nvcc as CMAKE_CUDA_COMPILER instead")
  endif()
  if(KESCO_CHECK)
    set_property(TARGET ${target} PROPERTY CUDA_COMPILER_LAUNCHER
      "${CMAKE_COMMAND}" -E env KESCO=check "${KESCO_LAUNCH}" --)
    set_property(TARGET ${target} PROPERTY CUDA_RUNTIME_LIBRARY Shared)
    target_compile_options(${target} PRIVATE
      "$<$<COMPILE_LANGUAGE:CXX>:-O0;-g1;-gdwarf-4;-fno-omit-frame-pointer;-fno-optimize-sibling-calls>")
    return()
  endif()
  set(options "")
  if(DEFINED given_STREAMS)
    if(NOT given_STREAMS MATCHES "^[0-9]+$" OR given_STREAMS LESS 1 OR given_STREAMS GREATER 64)
      message(FATAL_ERROR "kesco_target(${target}): STREAMS is '${given_STREAMS}'; it is a number from 1 to 64")
    endif()
    list(APPEND options "--streams=${given_STREAMS}")
  endif()
  if(given_GRAPH)
    list(APPEND options "--emit=graph")
  endif()
  if(given_FIKIT)
    list(APPEND options "--fikit")
  endif()
  set_property(TARGET ${target} PROPERTY CUDA_COMPILER_LAUNCHER "${KESCO_LAUNCH}" ${options} --)
endfunction()
