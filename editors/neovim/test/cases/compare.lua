-- The newest run of a suite is compared with the previous one.
local t = require('support')

t.setup()
t.edit(t.write('eval.yaml', (t.greeter:gsub('trials_per_task: 2', 'trials_per_task: 8'))))
t.run()
vim.cmd('WazaCompare')
t.wait('the message', function()
  return t.said('fewer than two runs') == 1
end)
vim.cmd([[silent %s/Hello, Ada/Hallo, Ada/]])
t.run()
vim.cmd('WazaCompare')
local text = t.text((t.shows('waza-compare')))
t.has(text, 'B against A: 1 regressed, 0 improved')
t.has(text, '▼ hello')
t.has(text, '8/8 → 0/8  -100 points [')
