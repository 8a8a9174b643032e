-- A suite runs: results appear at the tasks' lines, in the log, in the status line and in
-- a notice.
local t = require('support')

t.setup()
local buffer = t.edit(t.write('eval.yaml', t.greeter))
t.same({}, t.marks(buffer), 'nothing was run yet')
t.same('', require('waza').statusline())

local seen = {}
require('waza.daemon').listen(function(_, run, method, params)
  table.insert(seen, params.seq)
  if method == 'eval.progress' and params.event == 'trial_start' then
    t.has(require('waza').statusline(), 'waza ' .. require('waza.model').tally(run).ended .. '/4')
  end
end)
local run = t.run()

t.same('completed', run.status)
for i, seq in ipairs(seen) do
  t.same(i, seq, 'every event once, in order')
end
t.wait('the marks', function()
  local m = t.marks(buffer)
  return m[18] == '✓ 2/2 passed' and m[20] == '✗ 0/2 failed'
end)
t.same('waza ✗ 1/2', require('waza').statusline())
t.wait('the notice', function()
  return t.said('eval.yaml completed: 1/2 tasks passed, 1 failed') == 1
end)

vim.cmd('WazaOutput')
t.wait('the log', function()
  return t.text():find('[letter] trial 2/2 failed (score 0.00)', 1, true)
end)
t.has(t.text(), run.id)
t.same('waza-output', vim.bo.filetype)
t.is(not vim.bo.modifiable, 'the log cannot be changed')

-- Signs appear in the sign column of the tasks' lines.
vim.cmd('close')
vim.cmd('redraw!')
local column = vim.fn.screenstring(20, 1) .. vim.fn.screenstring(20, 2)
t.has(column, '✗')
