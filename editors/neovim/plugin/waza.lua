-- Commands, <Plug> mappings and autocommands. Everything else is loaded when one of
-- them is used.

if vim.g.loaded_waza then
  return
end
vim.g.loaded_waza = true

if vim.fn.has('nvim-0.7') == 0 then
  vim.api.nvim_err_writeln('waza needs Neovim 0.7 or newer')
  return
end

local function command(name, options, action)
  vim.api.nvim_create_user_command(name, action, options)
end

command('WazaRun', {
  nargs = '?',
  complete = function(lead)
    return require('waza.commands').complete_suites(lead)
  end,
  desc = 'Run a suite, or tasks of this one',
}, function(a)
  require('waza').run(a.args)
end)
command('WazaRunNearest', { desc = 'Run the task at the cursor' }, function()
  require('waza').run_nearest()
end)
command('WazaStop', { desc = 'Cancel active runs' }, function()
  require('waza').stop()
end)
command('WazaOutput', { desc = 'Show the log of runs' }, function()
  require('waza').output()
end)
command('WazaRuns', { bang = true, desc = 'List past runs' }, function(a)
  require('waza').runs(a.bang)
end)
command('WazaResults', { nargs = '?', desc = 'Show the results of a run' }, function(a)
  require('waza').results(a.args)
end)
command(
  'WazaTranscript',
  { nargs = '?', desc = 'Show the transcript of a trial of the task at the cursor' },
  function(a)
    require('waza').transcript(a.args)
  end
)
command('WazaCompare', { nargs = '*', desc = 'Compare runs' }, function(a)
  require('waza').compare(a.fargs)
end)
command('WazaRestart', { desc = 'Restart the daemon' }, function()
  require('waza').restart()
end)

for plug, name in pairs({
  ['(waza-run)'] = 'WazaRun',
  ['(waza-run-nearest)'] = 'WazaRunNearest',
  ['(waza-stop)'] = 'WazaStop',
  ['(waza-output)'] = 'WazaOutput',
  ['(waza-runs)'] = 'WazaRuns',
  ['(waza-results)'] = 'WazaResults',
  ['(waza-transcript)'] = 'WazaTranscript',
  ['(waza-compare)'] = 'WazaCompare',
  ['(waza-restart)'] = 'WazaRestart',
}) do
  vim.keymap.set('n', '<Plug>' .. plug, '<Cmd>' .. name .. '<CR>', { desc = name })
end

local group = vim.api.nvim_create_augroup('waza', { clear = true })

vim.api.nvim_create_autocmd({ 'BufReadPost', 'BufNewFile' }, {
  group = group,
  pattern = { '*.yaml', '*.yml' },
  callback = function(event)
    if require('waza.config').options.auto_attach then
      require('waza').attach(event.buf)
    end
  end,
})
vim.api.nvim_create_autocmd('ColorScheme', {
  group = group,
  callback = function()
    if package.loaded['waza.buffers'] then
      require('waza.buffers').highlights()
    end
  end,
})
vim.api.nvim_create_autocmd('VimLeavePre', {
  group = group,
  callback = function()
    if package.loaded['waza.daemon'] then
      require('waza.daemon').leave()
    end
  end,
})
