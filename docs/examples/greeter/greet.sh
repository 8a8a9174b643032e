# An agent that reads the prompt from stdin and repeats it politely.
echo "Please: $(cat)"
