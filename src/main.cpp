#include "cli/app.h"

int main(int argc, char** argv) {
  return grapnel::cli::main(argc, argv);
}
