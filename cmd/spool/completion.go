package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Run prints the script. It is made of the command line as this program understands it.
func (c completionCmd) Run(app *kong.Kong) error {
	write := map[string]func(io.Writer, *kong.Application){"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}[c.Shell]
	write(app.Stdout, app.Model)
	return nil
}

// completions are what may follow a command: its own commands, its flags, and the values of its arguments where
// they are known.
func completions(command *kong.Node) (all []string) {
	for _, c := range command.Children {
		all = append(all, c.Name)
	}
	for _, f := range flagsOf(command) {
		all = append(all, "--"+f.Name)
	}
	for _, a := range command.Positional {
		all = append(all, choices(a)...)
	}
	return all
}

// flagsOf are the flags of a command, and those that all have.
func flagsOf(command *kong.Node) (all []*kong.Flag) {
	for _, group := range command.AllFlags(true) {
		all = append(all, group...)
	}
	return all
}

// choices are the values that a flag or an argument may have, where they are few.
func choices(v *kong.Value) (all []string) {
	if v.Enum == "" {
		return nil
	}
	for _, c := range v.EnumSlice() {
		if c != "" {
			all = append(all, c)
		}
	}
	return all
}

// isFile reports whether a value is a path.
func isFile(v *kong.Value) bool {
	return v.Tag.Type == "path" || strings.Contains(v.Tag.PlaceHolder, "FILE") || strings.Contains(v.Tag.PlaceHolder, "DIR")
}

func bashCompletion(w io.Writer, app *kong.Application) {
	var names []string
	fmt.Fprintf(w, `# bash completion of spool: eval "$(spool completion bash)"
_spool() {
	local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}" offers=
	COMPREPLY=()
	case "${COMP_WORDS[1]} $previous" in
`)
	for _, c := range app.Children {
		names = append(names, c.Name)
		for _, f := range flagsOf(c) {
			switch values := choices(f.Value); {
			case len(values) > 0:
				fmt.Fprintf(w, "\t%q) COMPREPLY=($(compgen -W %q -- \"$current\")); return ;;\n", c.Name+" --"+f.Name, strings.Join(values, " "))
			case isFile(f.Value):
				fmt.Fprintf(w, "\t%q) COMPREPLY=($(compgen -f -- \"$current\")); return ;;\n", c.Name+" --"+f.Name)
			case !f.IsBool():
				fmt.Fprintf(w, "\t%q) return ;;\n", c.Name+" --"+f.Name)
			}
		}
	}
	fmt.Fprintf(w, "\tesac\n\tcase \"$COMP_CWORD ${COMP_WORDS[1]}\" in\n\t1*) offers=%q ;;\n", strings.Join(names, " "))
	for _, c := range app.Children {
		fmt.Fprintf(w, "\t*\" %s\") offers=%q ;;\n", c.Name, strings.Join(completions(c), " "))
	}
	fmt.Fprint(w, `	esac
	COMPREPLY=($(compgen -W "$offers" -- "$current"))
	[ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- "$current"))
}
complete -o filenames -F _spool spool
`)
}

// zshCompletion has zsh use bash's.
func zshCompletion(w io.Writer, app *kong.Application) {
	fmt.Fprint(w, "# zsh completion of spool: eval \"$(spool completion zsh)\"\nautoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n")
	bashCompletion(w, app)
}

func fishCompletion(w io.Writer, app *kong.Application) {
	fmt.Fprint(w, "# fish completion of spool: spool completion fish | source\n")
	for _, c := range app.Children {
		fmt.Fprintf(w, "complete -c spool -n __fish_use_subcommand -f -a %s -d %s\n", c.Name, fishQuoted(c.Help))
		seen := "-n '__fish_seen_subcommand_from " + c.Name + "'"
		for _, f := range flagsOf(c) {
			needs := ""
			switch values := choices(f.Value); {
			case len(values) > 0:
				needs = " -x -a " + fishQuoted(strings.Join(values, " "))
			case isFile(f.Value):
				needs = " -r -F"
			case !f.IsBool():
				needs = " -x"
			}
			fmt.Fprintf(w, "complete -c spool %s -l %s%s -d %s\n", seen, f.Name, needs, fishQuoted(f.Help))
		}
		for _, child := range c.Children {
			fmt.Fprintf(w, "complete -c spool %s -a %s -d %s\n", seen, child.Name, fishQuoted(child.Help))
		}
		for _, a := range c.Positional {
			if values := choices(a); len(values) > 0 {
				fmt.Fprintf(w, "complete -c spool %s -f -a %s\n", seen, fishQuoted(strings.Join(values, " ")))
			}
		}
	}
}

func fishQuoted(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
}
