package sdk

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tarball is what npm says that it packs.
type tarball struct {
	Filename string `json:"filename"`
	Files    []struct {
		Path string `json:"path"`
	} `json:"files"`
}

// jsPackage packs the client as it is published, installs that where the SDKs are within reach, and
// checks its files, its types and that the README's code runs.
func jsPackage(t *testing.T, r *rig) {
	dir := t.TempDir()
	var packed []tarball
	if err := json.Unmarshal(runIn(t, jsClient, "npm", "pack", "--json", "--loglevel=error", "--pack-destination", dir), &packed); err != nil || len(packed) != 1 {
		t.Fatalf("npm pack: %d packages, %v", len(packed), err)
	}
	wantPacked(t, packed[0])

	app := filepath.Join(dir, "app")
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(app, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(app, 0o755); err != nil {
		t.Fatal(err)
	}
	write("package.json", `{"private":true,"type":"module"}`)
	runIn(t, app, "npm", "install", "--offline", "--no-audit", "--no-fund", filepath.Join(dir, packed[0].Filename))
	link(t, filepath.Join(dir, "node_modules"), filepath.Join("js", "node_modules"))

	types, err := os.ReadFile(filepath.Join("js", "types.ts"))
	if err != nil {
		t.Fatal(err)
	}
	write("sdks.ts", string(types))
	write("own.ts", "import '@spool-dev/client';\nexport type * from '@spool-dev/client';\n")
	for _, options := range []string{
		"--module node16 --moduleResolution node16 --lib es2023 --types node own.ts",
		"--module node16 --moduleResolution node16 --lib es2023,dom --typeRoots none own.ts",
		"--module esnext --moduleResolution bundler --lib es2023,dom --typeRoots none own.ts",
		"--module esnext --moduleResolution bundler --lib es2023,dom,dom.iterable,dom.asynciterable --typeRoots none --skipLibCheck sdks.ts",
	} {
		tsc := absolute(t, filepath.Join("js", "node_modules", "typescript", "bin", "tsc"))
		runNode(t, app, append([]string{tsc, "--strict", "--noEmit", "--target", "es2022"}, strings.Fields(options)...)...)
	}

	write("readme.mjs", readmeProgram(t, filepath.Join(app, "node_modules", "@spool-dev", "client", "README.md"), r.spool))
	if got := string(runNode(t, app, "readme.mjs")); got != slowly {
		t.Errorf("the README's first code prints %q", got)
	}
}

// readmeProgram is a README's first code at a Spool of ours, and a call with the client that it makes.
func readmeProgram(t *testing.T, readme, spool string) string {
	t.Helper()
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(text), "\n```js")
	_, code, _ = strings.Cut(code, "\n") // less what the fence says
	code, _, _ = strings.Cut(code, "```\n")
	code = strings.NewReplacer("http://buffer:8787/openai", spool+"/emu", "http://buffer:8787", spool).Replace(code)
	return "process.env.OPENAI_API_KEY = 'k';\n" + code + `
const stream = await client.chat.completions.create({ model: 'lab-readme', stream: true, messages: [{ role: 'user', content: 'slowly' }] });
for await (const { choices } of stream) process.stdout.write(choices[0]?.delta?.content ?? '');
`
}

// wantPacked checks that all of the sources are in the package, and that nothing else is needed.
func wantPacked(t *testing.T, packed tarball) {
	t.Helper()
	want := []string{"LICENSE", "README.md", "package.json"}
	for _, folder := range []string{"src", "examples"} {
		entries, err := os.ReadDir(filepath.Join(jsClient, folder))
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			want = append(want, folder+"/"+entry.Name())
		}
	}
	var got []string
	for _, file := range packed.Files {
		got = append(got, file.Path)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("packed %q\nwant   %q", got, want)
	}
	text, err := os.ReadFile(filepath.Join(jsClient, "package.json"))
	if err != nil {
		t.Fatal(err)
	}
	var own map[string]any
	if err := json.Unmarshal(text, &own); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"dependencies", "peerDependencies", "optionalDependencies", "bundleDependencies"} {
		if own[kind] != nil {
			t.Errorf("%s: %v", kind, own[kind])
		}
	}
}
