-- Only files of suites are attached. A repository has one daemon, which ends with
-- Neovim. Closed buffers are forgotten.
local t = require('support')

t.setup()
local daemons = require('waza.daemon')
local suites = require('waza.suites')

-- YAML that belongs to no suite starts nothing.
vim.cmd('edit ' .. t.write('lonely/config.yaml', 'a: 1\n'))
t.same({}, daemons.all())

vim.fn.mkdir(t.dir .. '/repo/.git', 'p')
t.write('repo/evals/one/eval.yaml', 'name: one\nconfig: {executor: mock}\ntasks: [tasks/*.yaml]\n')
t.write('repo/evals/two/smoke.eval.yaml', t.greeter)
local task = t.write('repo/evals/one/tasks/greet.yaml', 'id: greet\nprompt: Greet Ada.\n')
local one = t.edit(task)
local two = t.edit(t.dir .. '/repo/evals/two/smoke.eval.yaml')
t.same(1, #daemons.all(), 'one repository, one daemon')
t.same(t.dir .. '/repo', daemons.all()[1].root)
t.is(vim.lsp.buf_is_attached(one, daemons.all()[1].client_id), 'a task file is served')
t.is(vim.lsp.buf_is_attached(two, daemons.all()[1].client_id), 'so is a suite')

-- A file next to the tasks, which the suite does not name, is ignored.
vim.cmd('edit ' .. t.write('repo/evals/one/notes.yaml', 'a: 1\n'))
local asked
require('waza').attach(0, function(suite)
  asked = { suite }
end)
t.wait('the answer', function()
  return asked
end)
t.same({}, asked)
t.same(nil, suites.attached_to(vim.api.nvim_get_current_buf()))

-- A broken task file still belongs to its suite.
local broken = t.write('repo/evals/one/tasks/broken.yaml', 'id: broken\nprompt: [\n')
vim.cmd('edit ' .. broken)
local buffer = vim.api.nvim_get_current_buf()
t.wait('the findings of a broken task', function()
  return suites.attached_to(buffer) and #vim.diagnostic.get(buffer) > 0
end)
vim.cmd('bwipeout!')
t.same(nil, suites.attached_to(buffer))
os.remove(broken)

-- A reloaded buffer stays attached.
vim.cmd('buffer ' .. one .. ' | edit!')
t.wait('the suite', function()
  return suites.attached_to(one)
end)

-- Restarting ends one process and starts another.
local daemon = daemons.all()[1]
local pid = require('waza.compat').pid(daemon:client())
vim.cmd('WazaRestart')
t.wait('the new daemon', function()
  return daemon.state == 'ready' and require('waza.compat').pid(daemon:client()) ~= pid
end)
t.is(not t.alive(pid), 'the old one is gone')
t.is(vim.lsp.buf_is_attached(one, daemon.client_id), 'the new one serves the buffers')

-- Nothing is attached automatically if auto_attach is off.
t.setup({ auto_attach = false })
local third = t.write('third/eval.yaml', t.greeter)
vim.cmd('edit ' .. third)
t.same(nil, suites.attached_to(vim.api.nvim_get_current_buf()))
t.is(t.run().suite_path == third, 'commands find the suite nevertheless')
