// The command line: which commands there are and what they take.
#pragma once

namespace grapnel::cli {

int main(int argc, char** argv);

}  // namespace grapnel::cli
