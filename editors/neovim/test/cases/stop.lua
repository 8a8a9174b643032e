-- A run is stopped: it ends as cancelled, with every process it started.
local t = require('support')

t.setup()
local buffer, suite = t.edit(t.write('eval.yaml', t.gated))
local run = t.start_gated()
t.wait('the mark of the running task', function()
  return t.marks(buffer)[16] == '● running 1/3'
end)
t.has(require('waza').statusline(), 'waza 1/3')
local pid
t.wait('the agent', function()
  pid = t.pid_of(2)
  return pid
end)
t.is(t.alive(pid), 'the agent works')

vim.cmd('WazaStop')
t.wait('the end', function()
  return run.status == 'cancelled'
end)
t.wait('the mark', function()
  local mark = t.marks(buffer)[16]
  return mark and mark:find('○ 1/3 cancelled', 1, true)
end)
t.wait('the notice', function()
  return t.said('eval.yaml cancelled') == 1
end)
t.wait('the end of the agent', function()
  return not t.alive(pid)
end)
t.same('ready', suite.daemon.state, 'the daemon continues')

vim.cmd('WazaStop')
t.wait('the message', function()
  return t.said('nothing is running') == 1
end)
