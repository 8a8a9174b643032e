-- The list of past runs: results, comparing, cancelling, deleting, help.
local t = require('support')

t.setup()
t.write('other/eval.yaml', t.greeter)
local path = t.write('eval.yaml', t.gated)
t.run('WazaRun ' .. t.dir .. '/other')
t.edit(path)
t.write('gate', '')
local first = t.run()
local second = t.run()

vim.cmd('WazaRuns')
local buffer, window = t.shows('waza-runs')
t.same(2, vim.api.nvim_buf_line_count(buffer), 'the runs of this suite')
t.is(t.text(buffer):find(second.id, 1, true) < t.text(buffer):find(first.id, 1, true), 'newest first')
t.has(t.text(buffer), 'gated  1/1  completed  command  ' .. os.date('%Y-%m-%d %H:'))

t.press('?')
local help = t.shows('waza-help')
t.has(t.text(help), 'compare: on a first run, then on a second')
t.press('q')

t.press('gg')
t.press('<CR>')
t.has(t.text((t.shows('waza-results'))), 'gated · ' .. second.id)
vim.cmd('close')

vim.api.nvim_set_current_win(window)
t.press('G')
t.press('c')
t.has(vim.api.nvim_buf_get_lines(buffer, 1, 2, false)[1], 'A ')
t.press('gg')
t.press('c')
local compared = t.text((t.shows('waza-compare')))
t.has(compared, 'A  ' .. first.id)
t.has(compared, 'B against A: 0 regressed, 0 improved')
t.has(compared, 'wait  3/3 → 3/3')
vim.cmd('close')

-- A run is deleted only if the user confirms.
local answer, question = 2, nil
vim.fn.confirm = function(text) -- luacheck: ignore
  question = text
  return answer
end
vim.api.nvim_set_current_win(window)
t.press('G')
t.press('d')
t.has(question, 'Delete run ' .. first.id)
t.same(2, vim.api.nvim_buf_line_count(buffer))
answer = 1
t.press('d')
t.wait('the run to go', function()
  return vim.api.nvim_buf_line_count(buffer) == 1 and t.text(buffer):find(second.id, 1, true)
end)

-- An active run is cancelled.
os.remove(t.dir .. '/gate')
vim.cmd('wincmd p')
local run = t.start_gated('WazaRun ' .. path)
vim.api.nvim_set_current_win(window)
t.press('R')
t.wait('the new run', function()
  return t.text(buffer):find('running', 1, true)
end)
t.press('gg')
t.press('x')
t.wait('the end', function()
  return run.status == 'cancelled'
end)

-- With a bang, the runs of all suites.
t.press('q')
vim.cmd('WazaRuns!')
buffer = t.shows('waza-runs')
t.has(t.text(buffer), 'greeter')
