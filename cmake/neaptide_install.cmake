# Two export sets: the planner alone (neaptide::plan), and everything (neaptide::neaptide).
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(NEAPTIDE_CONFIG_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/neaptide)

add_library(neaptide_planner INTERFACE)
target_link_libraries(neaptide_planner INTERFACE neaptide_memory neaptide_plan)
set_target_properties(neaptide_planner PROPERTIES EXPORT_NAME plan)
add_library(neaptide::plan ALIAS neaptide_planner)

add_library(neaptide_everything INTERFACE)
target_link_libraries(neaptide_everything INTERFACE neaptide_session neaptide_report)
set_target_properties(neaptide_everything PROPERTIES EXPORT_NAME neaptide)
add_library(neaptide::neaptide ALIAS neaptide_everything)

# A part belongs to the set of the first target that needs it.
set(PLANNER_PARTS neaptide_flags neaptide_base neaptide_milp neaptide_plan neaptide_memory neaptide_planner)
set(OTHER_PARTS neaptide_graph neaptide_ops neaptide_onnx_schema neaptide_onnx neaptide_autodiff neaptide_passes
    neaptide_cost neaptide_lower neaptide_runtime neaptide_backend_reference neaptide_backend_cpu neaptide_session neaptide_report
    neaptide_everything)
foreach(SET PLANNER OTHER)
  set(PRESENT)
  foreach(PART ${${SET}_PARTS})
    if(TARGET ${PART})
      list(APPEND PRESENT ${PART})
    endif()
  endforeach()
  install(TARGETS ${PRESENT} EXPORT neaptide_${SET} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endforeach()
install(EXPORT neaptide_PLANNER NAMESPACE neaptide:: FILE neaptidePlanTargets.cmake DESTINATION ${NEAPTIDE_CONFIG_DIR})
install(EXPORT neaptide_OTHER NAMESPACE neaptide:: FILE neaptideTargets.cmake DESTINATION ${NEAPTIDE_CONFIG_DIR})

install(TARGETS neaptide RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/neaptide DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.hpp" PATTERN "cli" EXCLUDE)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/neaptideConfig.cmake.in
  ${PROJECT_BINARY_DIR}/neaptideConfig.cmake INSTALL_DESTINATION ${NEAPTIDE_CONFIG_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/neaptideConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/neaptideConfig.cmake ${PROJECT_BINARY_DIR}/neaptideConfigVersion.cmake
        DESTINATION ${NEAPTIDE_CONFIG_DIR})
