package packages

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// exposure is the most that systemd-analyze may find, in tenths; 20 is its "OK".
const exposure = 20

// units are the units in a folder of the test's, with a program that is there in place of ours.
func units(t *testing.T) (paths []string, service string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"spool.service", "spool.socket"} {
		b, err := os.ReadFile(filepath.Join("../../deploy/systemd", name))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(b), "/usr/local/bin/spool", "/bin/true")
		paths = append(paths, filepath.Join(dir, name))
		if err := os.WriteFile(paths[len(paths)-1], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if name == "spool.service" {
			service = text
		}
	}
	return paths, service
}

func TestSystemd_UnitsAreSound(t *testing.T) {
	paths, service := units(t)
	out, err := exec.CommandContext(t.Context(), "systemd-analyze", append([]string{"verify"}, paths...)...).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("verify: %v\n%s", err, out)
	}
	out, err = exec.CommandContext(t.Context(), "systemd-analyze", "security", "--offline=true",
		"--threshold="+strconv.Itoa(exposure), paths[0]).CombinedOutput()
	if err != nil {
		t.Errorf("security: %v\n%s", err, out)
	}
	if !strings.Contains(service, "\nLimitCORE=0\n") {
		t.Error("a core, which holds prompts and keys, may be written")
	}
	grace := regexp.MustCompile(`--grace (\w+)`).FindStringSubmatch(service)
	stop := regexp.MustCompile(`TimeoutStopSec=(\d+)`).FindStringSubmatch(service)
	if grace == nil || stop == nil {
		t.Fatal("no grace, or no time to stop")
	}
	seconds, err := strconv.ParseInt(stop[1], 10, 64)
	if err != nil || !fits(t, grace[1], seconds) {
		t.Errorf("systemd kills after %s s, the grace is %s", stop[1], grace[1])
	}
}
