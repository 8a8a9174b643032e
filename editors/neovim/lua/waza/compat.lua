-- Differences between the versions of Neovim, from 0.7 on.

local M = {}

local method_style = vim.fn.has('nvim-0.11') == 1

-- start_client starts a separate language client, and returns its id, or nil.
function M.start_client(config)
  if method_style then
    return vim.lsp.start(config, {
      attach = false,
      reuse_client = function()
        return false
      end,
    })
  end
  return vim.lsp.start_client(config)
end

-- request returns whether the request was sent, and its id.
function M.request(client, method, params, handler, buffer)
  if method_style then
    return client:request(method, params, handler, buffer or 0)
  end
  return client.request(method, params, handler, buffer or 0)
end

function M.stop(client, force)
  if method_style then
    client:stop(force)
  else
    client.stop(force)
  end
end

-- attach attaches a client to a buffer.
function M.attach(buffer, client_id)
  if vim.fn.has('nvim-0.10') == 0 then
    -- Until 0.9, Neovim stops listening to a buffer for good if it changes while no
    -- client is attached. A client that does not exist prevents that while the daemon
    -- restarts.
    vim.lsp.buf_attach_client(buffer, -1)
  end
  return vim.lsp.buf_attach_client(buffer, client_id)
end

-- serves reports whether the language server has a capability.
function M.serves(client, capability)
  local has = client and client.server_capabilities and client.server_capabilities[capability]
  return has ~= nil and has ~= false
end

-- pid returns the id of the client's process; nil if there is no process.
function M.pid(client)
  return client and client.rpc and client.rpc.pid
end

-- ended reports whether the process of a client has ended.
function M.ended(client)
  if not client then
    return true
  end
  if method_style then
    return client:is_stopped()
  end
  return client.is_stopped()
end

local refreshes = {} -- by buffer, the number of refreshes

-- refresh_lenses requests the code lenses of a buffer again, and shows the answer to the last
-- request. codelens.refresh ignores a call while an answer is pending, and that answer can be
-- older than the change.
function M.refresh_lenses(client, buffer)
  local show = vim.lsp.codelens.on_codelens
  if show then
    local number = (refreshes[buffer] or 0) + 1
    refreshes[buffer] = number
    local params = { textDocument = { uri = vim.uri_from_bufnr(buffer) } }
    M.request(client, 'textDocument/codeLens', params, function(...)
      if refreshes[buffer] == number then
        show(...)
      end
    end, buffer)
  elseif vim.fn.has('nvim-0.10') == 1 then
    vim.lsp.codelens.refresh({ bufnr = buffer })
  else
    vim.api.nvim_buf_call(buffer, vim.lsp.codelens.refresh)
  end
end

-- health returns the functions for :checkhealth under their current names.
function M.health()
  local h = vim.health or require('health')
  return {
    start = h.start or h.report_start,
    ok = h.ok or h.report_ok,
    warn = h.warn or h.report_warn,
    error = h.error or h.report_error,
    info = h.info or h.report_info,
  }
end

return M
