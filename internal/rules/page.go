package rules

import (
	"fmt"
	"strings"
)

// Text is the rule for a terminal. Commands and paths stand on lines of their
// own and are never folded.
func (e Entry) Text() string {
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "%s (%s): %s\n\n%s\n", e.Name, e.Severity, e.Title, e.Doc)
	if e.Settles {
		b.WriteString("\nOn a running cluster it counts only when a second look, after --settle, has it too.\n")
	}
	if len(e.Proof) > 0 {
		b.WriteString("\nTo prove it by hand:\n")
		for _, p := range e.Proof {
			b.WriteString("  " + p + "\n")
		}
	}
	b.WriteString("\nWhat to do:\n  " + strings.ReplaceAll(e.Remedy, "\n", "\n  ") + "\n")
	if len(e.Sources) > 0 {
		b.WriteString("\nSources: " + strings.Join(e.Sources, ", ") + "\n")
	}
	return b.String()
}

// Page is the rule in Markdown.
func (e Entry) Page() string {
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "# %s\n\n%s. Usual severity: **%s**.", e.Name, capital(e.Title), e.Severity)
	if e.Settles {
		b.WriteString(" On a running cluster it counts only when a second look, after `--settle`, has it too.")
	}
	_, _ = fmt.Fprintf(&b, "\n\n## What it means\n\n%s\n", paragraphs(e.Doc))
	if len(e.Proof) > 0 {
		b.WriteString("\n## To prove it by hand\n\n```sh\n" + strings.Join(e.Proof, "\n") + "\n```\n")
	}
	_, _ = fmt.Fprintf(&b, "\n## What to do\n\n%s\n", paragraphs(e.Remedy))
	if e.Check != nil {
		_, _ = fmt.Fprintf(&b, "\n## What is read\n\nThe check `%s` looks at %s.\n", e.Check.Name, e.Check.Doc)
		b.WriteString("\n| evidence | where a running cluster has it | without it |\n|---|---|---|\n")
		for _, r := range e.Reads {
			how, lost := "only in recorded evidence", "less is seen"
			if r.How != "" {
				how = code(r.How)
			}
			if r.Needs != "" {
				how += ", " + r.Needs
			}
			if r.Must {
				lost = "no verdict"
			}
			_, _ = fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.Topic, how, lost)
		}
	}
	if len(e.Sources) > 0 {
		b.WriteString("\n## Sources\n\n")
		for _, s := range e.Sources {
			b.WriteString("- " + link(s) + "\n")
		}
	}
	return b.String()
}

// Index is the page that lists all rules.
func Index() string {
	var b strings.Builder
	b.WriteString("# Rules\n\nWhat can be wrong, by name. `kubectl kpr explain RULE` prints the same. Generated from the rules by `go generate ./internal/rules`.\n\n")
	b.WriteString("| rule | usual severity | what is wrong |\n|---|---|---|\n")
	for _, e := range All() {
		_, _ = fmt.Fprintf(&b, "| [%s](%s.md) | %s | %s |\n", e.Name, e.Name, e.Severity, e.Title)
	}
	return b.String()
}

// Pages are the files of docs/rules, by name.
func Pages() map[string]string {
	pages := map[string]string{"README.md": Index()}
	for _, e := range All() {
		pages[e.Name+".md"] = e.Page()
	}
	return pages
}

func capital(s string) string {
	if s == "" || strings.HasPrefix(s, "kube") {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// paragraphs keeps what a text means when Markdown reads it: angle brackets
// and underscores are words of commands here.
func paragraphs(s string) string {
	return strings.NewReplacer("<", "&lt;", ">", "&gt;", "_", `\_`, "*", `\*`, "KUBE-*", `KUBE-\*`).Replace(s)
}

func code(s string) string { return "`" + strings.ReplaceAll(s, "|", `\|`) + "`" }

// link makes an address of "owner/repository#number".
func link(s string) string {
	repo, number, ok := strings.Cut(s, "#")
	if !ok || strings.Count(repo, "/") != 1 || strings.ContainsAny(s, " :") {
		return paragraphs(s)
	}
	return fmt.Sprintf("[%s](https://github.com/%s/issues/%s)", s, repo, number)
}
