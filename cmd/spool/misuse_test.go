package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// values are what a flag or an argument cannot have, and what the complaint calls it.
type values struct {
	told  string
	wrong []string
}

// wrongValues are those of each flag and argument of the command line. One that is left empty takes any text:
// what is wrong with that shows on the machine.
var wrongValues = map[string]values{
	"<id>": {"<id>: ", []string{"nonsense", "01ARZ3NDEKTSV4RRFFQ69G5FA"}}, "key": {}, "idempotency-key": {}, "caller": {},
	"url":  {"--url, or SPOOL_URL: ", []string{"nonsense", "ftp://x", "http://user:pw@x"}},
	"from": {"--from: ", []string{"-1", "x"}}, "limit": {"--limit: ", []string{"-1", "x"}}, "state": {"--state", []string{"asleep"}}, "tag": {"--tag: ", []string{"nonsense", "=v"}},
	"origin": {"--origin: ", []string{"nonsense", "https://a.example/path"}}, "for": {"--for: ", []string{"0s", "2m", "soon"}}, "<shell>": {"<shell>", []string{"tcsh"}},
	"ttl": {"ttl: ", []string{"0s", "-1s", "soon"}},

	"listen": {" listen: ", []string{"nonsense", "127.0.0.1:99999"}}, "admin-listen": {"admin.listen: ", []string{"nonsense", "127.0.0.1:99999", "0.0.0.0:0"}}, "admin-key": {"admin.key: ", []string{"short"}},
	"provider": {"provider", []string{"nonsense", "=http://x", "mine=ftp://x", "mine:klingon=http://x"}}, "cors-origin": {"cors.origins[0]: ", []string{"nonsense"}},
	"secret": {" secret: ", []string{"x", strings.Repeat("x", minSecret-1), strings.Repeat(" ", minSecret)}}, "sync": {"sync: ", []string{"fast"}},
	"grace": {"grace: ", []string{"soon", "-1s"}}, "log-level": {"log_level: ", []string{"loud"}}, "config": {"config ", []string{"missing.yaml", "wrong.yaml"}},

	"store": {"store.url: ", []string{"localhost", "nats://user:pw@x:1"}}, "store-name": {"store.name: ", []string{"a b"}}, "store-monitor": {"store.monitors[0]: ", []string{"nonsense"}},
	"replicas": {"--replicas: ", []string{"-1", "6", "x"}}, "shards": {"--shards: ", []string{"-1", "65", "x"}},

	"tls-cert": {"tls.key: ", []string{"alone.pem"}}, "tls-key": {"tls.cert: ", []string{"alone.pem"}}, // one without the other
	"store-cert": {"store.key: ", []string{"alone.pem"}}, "store-key": {"store.cert: ", []string{"alone.pem"}},
	"data": {}, "<data>": {}, "<to>": {}, "<from>": {}, "store-credentials": {}, "store-ca": {},
	"<file>": {}, // what config check finds is its result
}

// alsoNeeded is what a command needs beside the flag that is wrong.
var alsoNeeded = map[string][]string{
	"show": {aRun}, "tail": {aRun}, "cancel": {aRun}, "ack": {aRun}, "token": {aRun},
	"backup": {"copy.db", "--data=folder"}, "restore": {"copy.db", "--data=folder"}, "compact": {"folder"},
}

const aRun = "01ARZ3NDEKTSV4RRFFQ69G5FAV"

// Whatever command it is: a value that nobody can do anything with is told by its name and ends with 2; nobody
// was asked before, and nothing was made.
func TestMisuse_EveryCommandEndsWith2(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("wrong.yaml", []byte("tttl: 1h\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	parser, err := newParser(io.Discard, io.Discard, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range parser.Model.Leaves(true) {
		for _, v := range valuesOf(command) {
			name := v.Name
			if v.Flag == nil {
				name = "<" + name + ">"
			}
			known, ok := wrongValues[name]
			if !ok {
				t.Errorf("spool %s: wrongValues does not know what %s cannot be", command.Path(), name)
			}
			for _, wrong := range known.wrong {
				if isFinding(command, v) {
					continue
				}
				var stdout, stderr strings.Builder
				args := wrongly(command, v, wrong)
				code := run(args, &stdout, &stderr)
				if said := stderr.String(); code != 2 || strings.Count(said, "\n") != 1 || !strings.HasPrefix(said, "spool: ") || !strings.Contains(said, known.told) {
					t.Errorf("spool %s: ends with %d and says %q; want 2 and %q", strings.Join(args, " "), code, said, known.told)
				}
			}
		}
	}
	if left, err := filepath.Glob("*"); err != nil || !slices.Equal(left, []string{"wrong.yaml"}) {
		t.Errorf("it has made %v, %v", left, err)
	}
}

// valuesOf are the arguments of a command, and those of its flags that have a value.
func valuesOf(command *kong.Node) []*kong.Value {
	all := slices.Clone(command.Positional)
	for _, f := range command.Flags {
		if !f.IsBool() {
			all = append(all, f.Value)
		}
	}
	return all
}

// isFinding reports whether what is wrong with a value is what the command is there to find, or no matter to it.
func isFinding(command *kong.Node, v *kong.Value) bool {
	return command.Name == "doctor" || command.Name == "health" && (v.Name == "config" || v.Name == "tls-cert")
}

// wrongly is a command line on which that value alone is wrong.
func wrongly(command *kong.Node, v *kong.Value, wrong string) []string {
	args := strings.Fields(command.Path())
	if v.Flag == nil {
		return append(args[:1], wrong)
	}
	args = append(append(args, alsoNeeded[command.Name]...), "--"+v.Name+"="+wrong)
	switch {
	case strings.HasPrefix(v.Name, "store-"), command.Name == "init":
		args = append(args, "--store=nats://127.0.0.1:1")
	case v.Name == "config" && command.Name == "check":
		args = append(args, "folder")
	case v.Name == "config" && slices.Contains([]string{"runs", "show", "tail"}, command.Name): // it is for a folder
		args = append(args, "--data=folder")
	}
	if v.Name == "store" {
		args = slices.DeleteFunc(args, func(s string) bool { return s == "--store=nats://127.0.0.1:1" })
	}
	return args
}
