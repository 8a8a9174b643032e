package dotnet

import (
	"path/filepath"
	"strings"

	"waza/eval/decode"
	"waza/eval/dialect"
	"waza/eval/skill"
)

// addSubject sets what the suite is about: a skill, or the agent NAME of a directory agent.NAME.
func (tr *translator) addSubject() {
	name := filepath.Base(tr.dir)
	if agent, ok := strings.CutPrefix(name, "agent."); ok {
		tr.suite.Set("name", dialect.Scalar(nil, name))
		tr.suite.Set("agent", dialect.Scalar(nil, agent))
		tr.suite.Set("baseline", dialect.Scalar(nil, true))
		tr.config.Set("skill_directories", dialect.Texts(nil, tr.Files.Relative(filepath.Join(tr.pluginDir(), "agents"))))
		return
	}
	tr.skill = tr.findSkill(name)
	if tr.skill != "" {
		name, _ = tr.SkillIn(tr.skill) // as agents know it
		tr.suite.Set("baseline", dialect.Scalar(nil, true))
		tr.config.Set("skill_directories", dialect.Texts(nil, tr.Files.Relative(tr.skill)))
	}
	tr.suite.Set("name", dialect.Scalar(nil, name))
	tr.suite.Set("skill", dialect.Scalar(nil, name))
	if !tr.HeadOnly {
		tr.warnServers()
	}
}

// pluginDir returns the directory of the plugin PLUGIN that tests/PLUGIN/SKILL/eval.yaml tests, whether
// it exists or not.
func (tr *translator) pluginDir() string {
	plugin := filepath.Dir(tr.dir)
	root := filepath.Dir(filepath.Dir(plugin))
	return filepath.Join(root, "plugins", filepath.Base(plugin))
}

// findSkill returns the directory of the skill under test, or "" without one.
func (tr *translator) findSkill(name string) string {
	dir := filepath.Join(tr.pluginDir(), "skills", name)
	if _, ok := tr.SkillIn(dir); ok {
		return dir
	}
	dir, _ = tr.SkillDir(name)
	return dir
}

// warnServers reports MCP servers that the plugin of the skill brings.
func (tr *translator) warnServers() {
	const levels = 3 // PLUGIN/skills/SKILL
	for dir, n := tr.skill, 0; dir != "" && n < levels; dir, n = filepath.Dir(dir), n+1 {
		file := filepath.Join(dir, "plugin.json")
		data, err := tr.Files.ReadSkill(file, skill.MaxBytes)
		if err != nil {
			continue
		}
		if plugin := decode.ParseJSON(file, file, data, &decode.Findings{}).Root; decode.Lookup(plugin, "mcpServers") != nil {
			tr.Reportf(tr.Source, nil, decode.Warning, decode.CodeNoEffect,
				"the MCP servers of %s are not started; name them in mcp_servers of a suite of your own", tr.Files.Shown(file))
		}
		return
	}
}
