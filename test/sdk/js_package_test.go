package sdk

import "testing"

func jsPackage(t *testing.T, _ *rig) { runNode(t, "js", "node_modules/typescript/bin/tsc", "-p", ".") }
