std = 'luajit'
globals = { 'vim' }
max_line_length = 150
exclude_files = { '.luacheckrc' }
