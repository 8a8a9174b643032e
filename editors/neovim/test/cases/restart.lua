-- A daemon that is killed during a run restarts: the run resumes, its remaining events are
-- shown once each, and the language server continues to serve the buffer.
local t = require('support')

t.setup({ restart = { delay = 20, max_delay = 100, attempts = 5 } })
local buffer, suite = t.edit(t.write('eval.yaml', t.gated))
local events = {}
require('waza.daemon').listen(function(_, _, method, params)
  table.insert(events, params.seq)
  if method == 'eval.complete' then
    events.ends = (events.ends or 0) + 1
  end
end)
local run = t.start_gated()
local client = suite.daemon.client_id
local pid = require('waza.compat').pid(suite.daemon:client())
local agent
t.wait('the agent', function()
  agent = t.pid_of(2)
  return agent
end)

vim.loop.kill(pid, 'sigkill')
t.wait('the death', function()
  return suite.daemon.client_id == nil
end)
-- Text typed while no daemon runs must not be lost.
vim.api.nvim_buf_set_lines(buffer, 2, 2, false, { '  trials_per_taks: 4' })
t.wait('the new daemon', function()
  return suite.daemon.state == 'ready' and suite.daemon.client_id ~= client
end)
t.wait('the run to resume', function()
  return run.status == 'running' and run.tasks.wait and run.tasks.wait.trials[2] == 'running'
end)
t.same(1, t.said('the daemon died; it restarts in 0.0 s'))

t.write('gate', '')
t.wait('the end', function()
  return run.status == 'completed'
end)
t.same({ 'passed', 'passed', 'passed' }, run.tasks.wait.trials)
for i, seq in ipairs(events) do
  t.same(i, seq, 'every event once, in order, including the end of the interrupted session')
end
t.same(run.seq, #events)
t.same(2, events.ends, 'one end of the interrupted session, one of the run')
t.wait('the agent of the killed daemon to be gone', function()
  return not t.alive(agent)
end)

-- The new daemon has the current text, and gets changes of it.
t.wait('the finding in the text typed meanwhile', function()
  return #vim.diagnostic.get(buffer) == 1
end)
vim.api.nvim_buf_set_lines(buffer, 2, 3, false, {})
t.wait('the finding to go', function()
  return #vim.diagnostic.get(buffer) == 0
end)
