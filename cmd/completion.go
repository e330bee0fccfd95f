package cmd

import (
	"fmt"

	"github.com/spf13/cobra"
)

// wordsOfBash is what the script of cobra takes from the package bash-completion: the words of the
// line, not broken at = and :, as names of flags and services contain them.
const wordsOfBash = `# Without the package bash-completion, this splits the line into words.
if ! declare -F _get_comp_words_by_ref >/dev/null; then
    _get_comp_words_by_ref() {
        local i word glued= line=$COMP_LINE
        words=() cword=0
        for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
            word=${COMP_WORDS[i]}
            if [[ -n $glued ]]; then
                words[${#words[@]}-1]+=$word
            else
                words+=("$word")
            fi
            if ((i == COMP_CWORD)); then
                cword=$((${#words[@]} - 1))
            fi
            line=${line#*"$word"}
            glued=
            [[ -n $line && $line != [[:space:]]* ]] && glued=1
        done
        cur=${words[cword]} prev=${words[cword - 1]}
    }
fi

`

// completeInBash makes the completion of bash work without the package bash-completion, and gives
// the commands of cobra examples.
func completeInBash(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	if group, _, err := root.Find([]string{"completion"}); err == nil && group.Name() == "completion" {
		group.Example = "  # Complete what is typed in this bash\n  source <(meshctl completion bash)"
		for _, shell := range group.Commands() {
			shell.Example = "  # Print the script\n  meshctl completion " + shell.Name()
		}
	}
	bash, _, err := root.Find([]string{"completion", "bash"})
	if err != nil || bash.RunE == nil {
		return // cobra has none without subcommands
	}
	bash.Long = `Prints the completion script for bash.

To complete in this shell:

	source <(meshctl completion bash)

To complete in every new shell, add that line to ~/.bashrc. The package
bash-completion is not needed.`
	generate := bash.RunE
	bash.RunE = func(cmd *cobra.Command, args []string) error {
		if _, err := fmt.Fprint(root.OutOrStdout(), wordsOfBash); err != nil {
			return err
		}
		return generate(cmd, args)
	}
}
