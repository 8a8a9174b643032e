# The agent of the command executor: gives the same answers as the model in model.yaml.
read -r prompt
case $prompt in
*"capital of"*) echo 'The capital is Paris.' ;;
*"Count the files"*)
	echo '{"type":"tool_call","name":"bash","arguments":{"command":"ls"},"result":"2"}' >&3
	echo 'There are 2 files.'
	;;
*"Count the lines"*) echo 'There are 3 lines.' ;;
*"Keep the word"*) echo 'I will keep it.' ;;
*"Which word"*) echo 'The word is cinnamon.' ;;
esac
