-- The quickfix list contains the failures, at their tasks. A run without failures
-- empties it, but not a list of another plugin.
local t = require('support')

t.setup()
local path = t.write('eval.yaml', t.greeter)
t.edit(path)
local run = t.run()
t.wait('the list', function()
  return #vim.fn.getqflist() == 1
end)
t.same('waza: ' .. run.id, vim.fn.getqflist({ title = 0 }).title)
local item = vim.fn.getqflist()[1]
t.same({ 20, 'E', path }, { item.lnum, item.type, vim.api.nvim_buf_get_name(item.bufnr) })
t.same('letter: polite: the output does not contain "Hello" (2 trials)', item.text)

vim.cmd('enew | cfirst')
t.same({ path, 20 }, { vim.api.nvim_buf_get_name(0), vim.api.nvim_win_get_cursor(0)[1] })

vim.cmd([[silent %s/The letter is/Hello, the letter is/]])
t.same('passed', t.run().tasks.letter.verdict)
t.same({}, vim.fn.getqflist())

vim.fn.setqflist({}, ' ', { title = 'grep', items = { { filename = path, lnum = 1, text = 'mine' } } })
t.run()
t.same('grep', vim.fn.getqflist({ title = 0 }).title)

-- The findings of a suite that cannot run are listed with their positions.
t.setup({ quickfix = 'open' })
vim.cmd([[silent %s/type: text/type: texd/]])
vim.cmd('WazaRun')
t.wait('the findings', function()
  return vim.fn.getqflist({ title = 0 }).title == 'waza: ' .. path
end)
item = vim.fn.getqflist()[1]
t.same({ 16, 'E' }, { item.lnum, item.type })
t.has(item.text, 'texd')
t.same(1, t.said('eval.yaml could not run: Validation failed: ' .. path .. ':16:'), 'it is reported')
t.is(vim.fn.getqflist({ winid = 0 }).winid ~= 0, 'the list is open')
