-- The last results appear at the tasks' lines when a suite is opened, follow the lines
-- as they move, and are hidden if disabled.
local t = require('support')

t.setup()
local path = t.write('eval.yaml', t.greeter)
vim.fn.system({ vim.env.WAZA, 'run', path })
local buffer = t.edit(path)
t.wait('the results of the run in the terminal', function()
  local m = t.marks(buffer)
  return m[18] == '✓ 2/2 passed' and m[20] == '✗ 0/2 failed'
end)

vim.api.nvim_buf_set_lines(buffer, 0, 0, false, { '# A comment', '# and another' })
t.same({ [20] = '✓ 2/2 passed', [22] = '✗ 0/2 failed' }, t.marks(buffer), 'marks move with their lines')
vim.cmd('silent write')
t.wait('the tasks as they were written', function()
  return require('waza.suites').attached_to(buffer).by_id.letter.line == 22
end)
t.wait('the marks', function()
  return vim.deep_equal({ [20] = '✓ 2/2 passed', [22] = '✗ 0/2 failed' }, t.marks(buffer))
end)

t.setup({ signs = false, virtual_text = false })
require('waza.buffers').show(require('waza.suites').attached_to(buffer), buffer)
t.same({}, t.marks(buffer))
