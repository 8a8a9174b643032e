std = 'luajit'
globals = { 'vim' }
max_line_length = 140
exclude_files = { '.luacheckrc' }
