-- The task at the cursor runs: one of several in a suite, or that of a task file.
local t = require('support')

t.setup()
local path = t.write('inline/eval.yaml', t.greeter)
local buffer = t.edit(path)

vim.api.nvim_win_set_cursor(0, { 23, 0 })
local run = t.run('WazaRunNearest')
t.same({ 'letter' }, run.order)
t.wait('the marks', function()
  local m = t.marks(buffer)
  return m[20] == '✗ 0/2 failed' and not m[18]
end)

vim.api.nvim_win_set_cursor(0, { 3, 0 })
vim.cmd('WazaRunNearest')
t.wait('the message', function()
  return t.said('there is no task at the cursor') == 1
end)

-- A task's file belongs to the suite above it; at every line it means its task.
t.write('files/eval.yaml', 'name: files\nconfig: {executor: mock}\ntasks: [tasks/*.yaml]\n')
local file = t.write('files/tasks/greet.yaml', 'id: greet\nname: Greet\nprompt: Greet Ada.\n')
buffer = t.edit(file)
vim.api.nvim_win_set_cursor(0, { 3, 0 })
run = t.run('WazaRunNearest')
t.same({ 'greet' }, run.order)
t.same(t.dir .. '/files/eval.yaml', require('waza.suites').attached_to(buffer).path)
t.wait('the mark', function()
  return t.marks(buffer)[1] == '✓ passed'
end)
