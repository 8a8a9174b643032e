-- What the user has chosen. Everything works without a call of setup().

local M = {}

local defaults = {
  -- The program, by name or path; further arguments to `waza lsp`; variables
  -- added to its environment.
  path = 'waza',
  args = {},
  env = {},

  -- Start the daemon for suites as they are opened. Nothing is run by that.
  auto_attach = true,
  -- Called with (client, buffer) whenever a buffer was attached: the place for keys.
  on_attach = nil,
  -- Let omnifunc complete, in buffers where it is not set otherwise.
  omnifunc = true,
  -- Show code lenses: run, debug, last result.
  code_lens = false,

  -- Results at the lines of tasks.
  signs = true,
  virtual_text = true,
  icons = {
    passed = '✓',
    failed = '✗',
    error = '!',
    timeout = '◷',
    cancelled = '○',
    skipped = '○',
    needs_review = '?',
    running = '●',
  },

  -- After a run that failed: true fills the quickfix list, 'open' also opens it.
  quickfix = true,
  -- Take up again, by itself, a run that the death of the daemon cut short.
  resume_interrupted = true,

  -- Waits before the daemon is started again, in ms: the first, and the longest.
  -- After so many deaths in a row it stays down until :WazaRestart.
  restart = { delay = 500, max_delay = 30000, attempts = 5 },

  -- Of floating windows; as of nvim_open_win().
  border = 'rounded',
}

M.options = vim.deepcopy(defaults)

local function check(options)
  vim.validate({
    path = { options.path, 'string' },
    args = { options.args, 'table' },
    env = { options.env, 'table' },
    auto_attach = { options.auto_attach, 'boolean' },
    on_attach = { options.on_attach, 'function', true },
    omnifunc = { options.omnifunc, 'boolean' },
    code_lens = { options.code_lens, 'boolean' },
    signs = { options.signs, 'boolean' },
    virtual_text = { options.virtual_text, 'boolean' },
    icons = { options.icons, 'table' },
    quickfix = {
      options.quickfix,
      function(q)
        return type(q) == 'boolean' or q == 'open'
      end,
      "true, false or 'open'",
    },
    resume_interrupted = { options.resume_interrupted, 'boolean' },
    restart = { options.restart, 'table' },
  })
  for name in pairs(options) do
    if defaults[name] == nil and name ~= 'on_attach' then
      error(('waza: setup() knows no option %q, see :help waza-options'):format(name), 0)
    end
  end
end

-- setup takes the user's options. It errors where one is of the wrong type, or unknown.
function M.setup(options)
  local merged = vim.tbl_deep_extend('force', vim.deepcopy(defaults), options or {})
  check(merged)
  M.options = merged
end

return M
