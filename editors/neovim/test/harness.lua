-- Runs the case named in $CASE, and ends Neovim: with 1 if it fails.

local plugin = vim.env.PLUGIN
vim.opt.runtimepath:append(plugin)
package.path = plugin .. '/test/?.lua;' .. package.path
vim.o.swapfile = false
vim.o.columns, vim.o.lines = 120, 40

local ok, err = xpcall(function()
  vim.cmd('runtime plugin/waza.lua')
  dofile(('%s/test/cases/%s.lua'):format(plugin, vim.env.CASE))
end, debug.traceback)

if not ok then
  io.stderr:write(tostring(err) .. '\n' .. require('support').state() .. '\n')
  vim.cmd('cquit 1')
end
vim.cmd('qall!')
