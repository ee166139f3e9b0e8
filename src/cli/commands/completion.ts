import { type Command, exitCodes, usageError } from "../command.ts";

const bash = `# bash completion for berth: source <(berth completion bash)
_berth() {
  local cur words
  words=("\${COMP_WORDS[@]:1:COMP_CWORD}")
  mapfile -t COMPREPLY < <(berth __complete -- "\${words[@]}" 2>/dev/null)
  if [[ \${#COMPREPLY[@]} -eq 0 ]]; then
    cur="\${COMP_WORDS[COMP_CWORD]}"
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
  fi
}
complete -o nosort -F _berth berth`;

const zsh = `#compdef berth
# zsh completion for berth: source <(berth completion zsh)
_berth() {
  local -a found
  found=("\${(@f)$(berth __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "\${found[1]}" ]]; then
    compadd -- "\${found[@]}"
  else
    _files
  fi
}
compdef _berth berth`;

const fish = `# fish completion for berth: berth completion fish | source
function __berth_complete
  set -l words (commandline -opc) (commandline -ct)
  berth __complete -- $words[2..-1] 2>/dev/null
end
complete -c berth -a '(__berth_complete)'`;

const scripts: Readonly<Record<string, string>> = { bash, zsh, fish };

export const completion: Command = {
  name: "completion",
  summary: "print a script that completes commands, kinds and names",
  description:
    "Prints a completion script for your shell. Names of kinds and objects are asked of the server " +
    "that the command line means.",
  usage: "completion bash|zsh|fish",
  options: {},
  arguments: ["bash|zsh|fish"],
  examples: [
    "source <(berth completion bash)",
    "berth completion zsh > ~/.zfunc/_berth",
    "berth completion fish > ~/.config/fish/completions/berth.fish",
  ],
  run: async (call) => {
    const [shell = ""] = call.arguments;
    const script = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined;
    if (script === undefined) {
      throw usageError(`there is no completion for "${shell}": take bash, zsh or fish`);
    }
    call.terminal.print(script);
    return exitCodes.ok;
  },
};
