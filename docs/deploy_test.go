package docs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"waza/cmd/waza/config"
	"waza/runner/fleet"
	"waza/runner/fleet/engine"
	"waza/runner/fleet/offer"
	"waza/runner/fleet/seal"
	"waza/runner/fleetaddr"
	"waza/runner/proc/proctest"
)

var deployDir = "deploy"

// deployFiles returns the files of docs/deploy by their paths there.
func deployFiles(t *testing.T) map[string]string {
	t.Helper()
	list := map[string]string{}
	require.NoError(t, fs.WalkDir(os.DirFS(deployDir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(deployDir, filepath.FromSlash(name)))
		list[name] = string(text)
		return err
	}))
	return list
}

// documentsOf decodes the documents of a YAML file.
func documentsOf(t *testing.T, text string) (list []any) {
	t.Helper()
	for dec := yaml.NewDecoder(strings.NewReader(text)); ; {
		var v any
		err := dec.Decode(&v)
		if errors.Is(err, io.EOF) {
			return list
		}
		require.NoError(t, err)
		list = append(list, v)
	}
}

// at returns the value of a document at a path of keys; numbers are indexes of lists.
func at(t *testing.T, document any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch key := step.(type) {
		case string:
			m, ok := document.(map[string]any)
			require.True(t, ok, "%v: %q is not in a map", path, key)
			document = m[key]
		case int:
			list, ok := document.([]any)
			require.True(t, ok && key < len(list), "%v: no item %d", path, key)
			document = list[key]
		}
	}
	return document
}

func words(t *testing.T, list any) (all []string) {
	t.Helper()
	for _, w := range list.([]any) {
		all = append(all, w.(string))
	}
	return all
}

// named returns the document of a kind and a name.
func named(t *testing.T, documents []any, kind, name string) any {
	t.Helper()
	i := slices.IndexFunc(documents, func(d any) bool { return at(t, d, "kind") == kind && at(t, d, "metadata", "name") == name })
	require.GreaterOrEqual(t, i, 0, "no %s %s", kind, name)
	return documents[i]
}

// requireCommand checks that waza has a command with these flags.
func requireCommand(t *testing.T, where string, line []string) {
	t.Helper()
	command, help, found := "waza", "", false
	for len(line) > 0 && !strings.HasPrefix(line[0], "-") {
		more, ok := helpOf(t, command+" "+line[0])
		if !ok {
			break
		}
		command, help, found, line = command+" "+line[0], more, true, line[1:]
	}
	require.True(t, found, "%s: waza has no command %q", where, line)
	for _, word := range line {
		if flag, _, _ := strings.Cut(word, "="); strings.HasPrefix(flag, "--") {
			require.Regexp(t, `(?m)^  `+flag+`\b`, help, "%s: no flag %s", where, flag)
		}
	}
}

// The files of docs/deploy use existing commands, flags and variables of waza.
func TestDeployNamesWhatExists(t *testing.T) {
	t.Parallel()
	files := deployFiles(t)
	compose := documentsOf(t, files["compose.yaml"])[0]
	requireCommand(t, "compose.yaml", words(t, at(t, compose, "services", "worker", "command")))
	requireCommand(t, "compose.yaml", words(t, at(t, compose, "services", "serve", "command")))
	workers := named(t, documentsOf(t, files["kubernetes/workers.yaml"]), "Deployment", "waza-worker")
	requireCommand(t, "workers.yaml", words(t, at(t, workers, "spec", "template", "spec", "containers", 0, "args")))
	for _, m := range regexp.MustCompile(`(?m)^CMD (\[.*\])$`).FindAllStringSubmatch(files["Dockerfile"], -1) {
		var line []string
		require.NoError(t, json.Unmarshal([]byte(m[1]), &line))
		requireCommand(t, "Dockerfile", line)
	}

	lines := 0
	commandLine := regexp.MustCompile("(?m)(?:^|[ \\t(`])waza (run|worker|fleet|serve|token|cache|runs)\\b([^\\n`|)#]*)")
	known := []string{"WAZA_STATE", "WAZA_FLEET", "WAZA_AGENT_KEY"}
	for name, text := range files {
		for _, m := range commandLine.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[2], "--") || strings.HasPrefix(m[1], "fleet") {
				requireCommand(t, name+": "+m[0], strings.Fields(m[1]+" "+strings.TrimRight(m[2], ".,:;")))
				lines++
			}
		}
		for _, variable := range regexp.MustCompile(`\bWAZA_[A-Z_]+[A-Z]\b`).FindAllString(text, -1) {
			require.True(t, slices.Contains(known, variable) || strings.HasPrefix(variable, config.Prefix) ||
				variable == fleet.NamesOf(fleetaddr.DefaultTeam).Orders,
				"%s: no variable %s", name, variable)
		}
	}
	require.GreaterOrEqual(t, lines, 4)

	// The server accepts the variables.
	env := proctest.Environment(t)
	for name, value := range at(t, compose, "services", "serve", "environment").(map[string]any) {
		env = append(env, name+"="+value.(string))
	}
	out, code := waza(t, env, "serve", "--check")
	require.Equal(t, 0, code, out)
	require.Contains(t, out, "0.0.0.0:8501")
	require.NotContains(t, out, "unknown variable")
	require.Equal(t, []string{"127.0.0.1:8501:8501"}, words(t, at(t, compose, "services", "serve", "ports")))
}

// Files of docs/deploy use the same names and numbers as each other and as waza.
func TestDeployNamesAgree(t *testing.T) {
	t.Parallel()
	files := deployFiles(t)
	compose := documentsOf(t, files["compose.yaml"])[0]
	worker := documentsOf(t, files["kubernetes/workers.yaml"])
	pod := at(t, named(t, worker, "Deployment", "waza-worker"), "spec", "template", "spec")
	args := words(t, at(t, pod, "containers", 0, "args"))
	slots := args[slices.Index(args, "--slots")+1]
	require.Equal(t, fmt.Sprint(":", at(t, pod, "containers", 0, "ports", 0, "containerPort")), args[slices.Index(args, "--metrics")+1])

	trigger := at(t, documentsOf(t, files["kubernetes/keda.yaml"])[0], "spec", "triggers", 0, "metadata")
	require.Equal(t, fleet.NamesOf(fleetaddr.DefaultTeam).Orders, at(t, trigger, "stream"))
	require.Equal(t, offer.Any, at(t, trigger, "consumer"))
	require.Equal(t, "label-gpu", offer.Class(offer.Labels([]string{"gpu"})), "README.md has it")
	require.Equal(t, slots, at(t, trigger, "lagThreshold"))

	secrets := documentsOf(t, files["kubernetes/secret.yaml"])
	for _, given := range []any{
		at(t, compose, "services", "worker", "environment", "WAZA_FLEET"),
		at(t, named(t, secrets, "Secret", "waza-nats"), "stringData", "fleet"),
	} {
		a, err := engine.Parse(given.(string))
		require.NoError(t, err)
		require.Equal(t, fleetaddr.DefaultTeam, a.Team)
	}

	// A worker does not start without a trusted key.
	keys := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, os.WriteFile(keys, []byte(at(t, named(t, secrets, "ConfigMap", "waza-trust"), "data", "keys").(string)), 0o600))
	_, err := seal.ReadTrust(keys)
	require.ErrorContains(t, err, "names no key to trust")

	// Volumes match mounts, and secrets match their references.
	var volumes, mounts []string
	for _, v := range at(t, pod, "volumes").([]any) {
		volumes = append(volumes, at(t, v, "name").(string))
	}
	for _, v := range at(t, pod, "containers", 0, "volumeMounts").([]any) {
		mounts = append(mounts, at(t, v, "name").(string))
	}
	require.ElementsMatch(t, volumes, mounts)
	resources := words(t, at(t, documentsOf(t, files["kubernetes/kustomization.yaml"])[0], "resources"))
	for _, name := range resources {
		require.Contains(t, files, "kubernetes/"+name)
	}
	require.NotContains(t, resources, "keda.yaml", "it needs what a cluster may lack")
	for name := range files {
		if base, ok := strings.CutPrefix(name, "kubernetes/"); ok && base != "kustomization.yaml" && base != "keda.yaml" {
			require.Contains(t, resources, base)
		}
	}
	require.Equal(t, 2, strings.Count(files["Dockerfile"], "USER 65532:65532"))
	require.Equal(t, 65532, at(t, pod, "securityContext", "runAsUser"))

	// The root of the file system is read-only, and waza writes to volumes.
	writes := regexp.MustCompile(`ENV HOME=(\S+) WAZA_STATE=(\S+)`).FindStringSubmatch(files["Dockerfile"])
	require.Equal(t, writes[1]+"/state", writes[2])
	require.Equal(t, writes[1], at(t, pod, "containers", 0, "volumeMounts", 0, "mountPath"))
	require.Contains(t, words(t, at(t, compose, "services", "serve", "volumes")), "state:"+writes[2])
}

func TestDeployComposeFollowsItsSchema(t *testing.T) {
	t.Parallel()
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join("..", ".ci", "schemas", "compose.json"))
	require.NoError(t, err)
	check := func(text string) error {
		encoded, err := json.Marshal(documentsOf(t, text)[0])
		require.NoError(t, err)
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
		require.NoError(t, err)
		return schema.Validate(document)
	}
	text := deployFiles(t)["compose.yaml"]
	require.NoError(t, check(text))
	require.Error(t, check(strings.Replace(text, "cap_drop", "cap_dorp", 1)))
}

// dockerfileFaults lists the mistakes in a Dockerfile that linters report.
func dockerfileFaults(text string) (faults []string) {
	fault := func(condition bool, what string) {
		if condition {
			faults = append(faults, what)
		}
	}
	stages, user := map[string]bool{}, ""
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		instruction, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		words := strings.Fields(rest)
		switch instruction {
		case "FROM":
			image := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return strings.HasPrefix(w, "--") })[0]
			_, tag, _ := strings.Cut(image, ":")
			fault(image != "scratch" && !stages[image] && (tag == "" || tag == "latest"), "image without a version: "+image)
			fault(user == "root", "stage of root before "+image)
			if i := slices.Index(words, "AS"); i >= 0 {
				stages[words[i+1]] = true
			}
			user = ""
		case "USER":
			user = words[0]
			fault(user == "0" || strings.HasPrefix(user, "root") || strings.HasPrefix(user, "0:"), "user "+user)
		case "ADD":
			fault(true, "ADD, which fetches addresses and unpacks archives: use COPY")
		case "ENV", "ARG":
			fault(regexp.MustCompile(`(?i)(password|secret|token|_key|seed)`).MatchString(rest), "secret in "+instruction)
		case "CMD", "ENTRYPOINT":
			fault(!strings.HasPrefix(rest, "["), instruction+" in shell form, which gets no signals")
		case "RUN":
			fault(strings.Contains(rest, "apt-get install") &&
				(!strings.Contains(rest, "--no-install-recommends") || !strings.Contains(rest, "rm -rf /var/lib/apt/lists")),
				"apt-get leaves more than was asked for")
			fault(strings.Contains(rest, "sudo ") || strings.Contains(rest, "curl "), "sudo or curl in RUN")
		}
	}
	fault(user == "", "the last stage runs as root")
	return faults
}

func TestDeployDockerfile(t *testing.T) {
	t.Parallel()
	text := deployFiles(t)["Dockerfile"]
	require.Empty(t, dockerfileFaults(text))
	mod, err := os.ReadFile(filepath.Join("..", "go.mod"))
	require.NoError(t, err)
	language := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(mod))[1]
	require.Regexp(t, `golang:`+regexp.QuoteMeta(language)+`\.\d+ AS build`, text)
	for from, to := range map[string]string{
		"golang:1.": "golang:latest #", "USER 65532:65532": "USER root", "COPY . .": "ADD http://example.com/x .",
		"ARG TARGETOS": "ARG NPM_TOKEN", `CMD ["worker"]`: "CMD worker", "--no-install-recommends ": "",
	} {
		require.Contains(t, text, from)
		require.NotEmpty(t, dockerfileFaults(strings.Replace(text, from, to, 1)), to)
	}

	// All sources of the program reach the build.
	ignored := deployFiles(t)["Dockerfile.dockerignore"]
	for _, dir := range []string{"cmd", "editors", "eval", "rpc", "runner", ".third_party"} {
		files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
		require.NoError(t, err)
		if more, err := filepath.Glob(filepath.Join("..", dir, "*", "*.go")); len(files)+len(more) > 0 {
			require.NoError(t, err)
			require.Contains(t, ignored, "\n!"+dir+"\n")
		}
	}
}

// Docker can build and run the images, if it is installed.
func TestDeployImages(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds two images")
	}
	if err := exec.Command("docker", "info").Run(); err != nil {
		t.Skip("no Docker engine: docker info failed")
	}
	for target, arg := range map[string]string{"worker": "version", "waza": "version"} {
		tag := "waza-test-" + target
		build := exec.Command("docker", "build", "--quiet", "--file", "docs/deploy/Dockerfile", "--target", target, "--tag", tag, ".")
		build.Dir = ".."
		out, err := build.CombinedOutput()
		require.NoError(t, err, string(out))
		t.Cleanup(func() { _ = exec.Command("docker", "image", "rm", "--force", tag).Run() })
		out, err = exec.Command("docker", "run", "--rm", "--read-only", "--cap-drop", "ALL", "--network", "none", tag, arg).CombinedOutput()
		require.NoError(t, err, string(out))
		require.Contains(t, string(out), "waza ")
	}
}
