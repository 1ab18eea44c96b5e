#include "case.hpp"

namespace neaptide::ops {
namespace {

TEST(Fixtures, MathAgreesWithPyTorch) { check_fixtures("math.json"); }
TEST(Fixtures, WindowsAgreeWithPyTorch) { check_fixtures("windows.json"); }
TEST(Fixtures, PaddingRulesAndResizingAgreeWithTheOnnxReference) { check_fixtures("windows_onnx.json"); }

}  // namespace
}  // namespace neaptide::ops
