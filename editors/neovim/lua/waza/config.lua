-- The user's options. Calling setup() is optional.

local M = {}

local defaults = {
  -- The program, by name or path; additional arguments to `waza lsp`; additional
  -- environment variables.
  path = 'waza',
  args = {},
  env = {},

  -- Start the daemon when suites are opened. This does not start runs.
  auto_attach = true,
  -- Called with (client, buffer) whenever a buffer was attached, for example to map
  -- keys.
  on_attach = nil,
  -- Set omnifunc in buffers without one.
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

  -- After a run with failures: true fills the quickfix list, 'open' also opens it.
  quickfix = true,
  -- Automatically resume a run that was interrupted because the daemon died.
  resume_interrupted = true,

  -- Waits before the daemon restarts, in ms: the first, and the longest. After this
  -- many deaths in a row it only restarts with :WazaRestart.
  restart = { delay = 500, max_delay = 30000, attempts = 5 },

  -- Border of floating windows, see nvim_open_win().
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
      error(('waza: setup() has no option %q, see :help waza-options'):format(name), 0)
    end
  end
end

-- setup sets the user's options. It raises an error for an unknown option or a wrong
-- type.
function M.setup(options)
  local merged = vim.tbl_deep_extend('force', vim.deepcopy(defaults), options or {})
  check(merged)
  M.options = merged
end

return M
