-- A Neovim that quits or is killed during a run leaves no process: neither a daemon nor
-- an agent.
local t = require('support')

t.setup()
local path = t.write('eval.yaml', t.gated)

-- Another Neovim starts the run, and reports the process of the agent.
local child = ([[
vim.opt.runtimepath:append(%q)
vim.cmd('runtime plugin/waza.lua')
require('waza').setup({ path = %q })
vim.cmd('edit %s | WazaRun')
]]):format(vim.env.PLUGIN, vim.env.WAZA, path)

local function start()
  os.remove(t.dir .. '/pid.2')
  local ended = false
  local script = t.write('child.lua', child)
  local job = vim.fn.jobstart(
    { vim.v.progpath, '--headless', '-u', 'NONE', '-i', 'NONE', '-n', '-c', 'luafile ' .. script },
    {
      on_exit = function()
        ended = true
      end,
    }
  )
  t.is(job > 0, 'the other Neovim runs')
  local agent
  t.wait('the agent', function()
    agent = t.pid_of(2)
    return agent
  end)
  local stat = io.open('/proc/' .. agent .. '/stat')
  local daemon = stat and tonumber(stat:read('*a'):match('%) %a (%d+)'))
  return {
    agent = agent,
    daemon = daemon,
    job = job,
    ended = function()
      return ended
    end,
  }
end

for _, how in ipairs({ 'quit', 'kill' }) do
  local other = start()
  if how == 'quit' then
    vim.fn.chansend(other.job, '')
    vim.loop.kill(vim.fn.jobpid(other.job), 'sigterm')
  else
    vim.loop.kill(vim.fn.jobpid(other.job), 'sigkill')
  end
  t.wait('Neovim to end', other.ended)
  t.wait('the agent to end after ' .. how, function()
    return not t.alive(other.agent)
  end)
  t.is(other.daemon and other.daemon > 1, 'the agent has a parent')
  t.wait('the daemon to end after ' .. how, function()
    return not t.alive(other.daemon)
  end)
end
