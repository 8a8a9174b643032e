-- :checkhealth waza

local config = require('waza.config')
local daemons = require('waza.daemon')
local health = require('waza.compat').health()

local M = {}

local function neovim()
  if vim.fn.has('nvim-0.7') == 1 then
    local v = vim.version()
    health.ok(('Neovim %d.%d.%d'):format(v.major, v.minor, v.patch))
  else
    health.error('Neovim is older than 0.7', { 'Install a newer Neovim' })
  end
end

local function program()
  local path = config.options.path
  if vim.fn.executable(path) ~= 1 then
    health.error(('%q does not exist or is not executable'):format(path), {
      'Install waza on the PATH',
      'or set its path: require("waza").setup({ path = "/path/to/waza" })',
    })
    return false
  end
  local out = vim.fn.systemlist({ path, 'version' })
  if vim.v.shell_error ~= 0 then
    health.error(('`%s version` ended with code %d'):format(path, vim.v.shell_error), out)
    return false
  end
  health.ok(('%s: %s'):format(vim.fn.exepath(path), out[1] or '?'))
  vim.fn.system({ path, 'lsp', '--help' })
  if vim.v.shell_error ~= 0 then
    health.error('this waza is too old for editors: it has no `waza lsp`', { 'Install a newer waza' })
    return false
  end
  health.ok('`waza lsp` works')
  return true
end

local function running()
  local list = daemons.all()
  if #list == 0 then
    health.info('no daemon is running yet: open a suite, or use :WazaRun')
  end
  for _, daemon in ipairs(list) do
    local text = ('%s: %s'):format(daemon.root, daemon.state)
    if daemon.state == 'ready' then
      health.ok(('%s, waza %s'):format(text, daemon.version))
    elseif daemon.given_up then
      health.error(text .. ': ' .. daemon.reason, { ':WazaRestart restarts it' })
    else
      health.warn(text)
    end
  end
end

local function tools()
  if vim.fn.executable('python3') == 1 or vim.env.WAZA_PYTHON then
    health.ok('python3, for Python assertions in suites')
  else
    health.warn('python3 is not on the PATH: Python assertions in suites cannot be checked', {
      'Install it, or set WAZA_PYTHON',
    })
  end
end

function M.check()
  health.start('waza')
  neovim()
  if program() then
    tools()
  end
  health.start('waza: daemons')
  running()
end

return M
