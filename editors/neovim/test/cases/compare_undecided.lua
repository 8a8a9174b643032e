-- An interval that excludes 0 beside something undecided is explained.
local t = require('support')

t.setup()
t.edit(t.write('eval.yaml', (t.greeter:gsub('trials_per_task: 2', 'trials_per_task: 4'))))
t.run()
vim.cmd([[silent %s/Hello, Ada/Hallo, Ada/]])
t.run()
vim.cmd('WazaCompare')
local text = t.text((t.shows('waza-compare')))
t.has(text, 'undecided, each by itself')
t.has(text, '? hello')
t.has(text, '4/4 → 0/4  -100 points [')
t.has(text, 'An interval that excludes 0 beside "undecided" is no contradiction')
