/** The shells with a completion script. */
export const shells = ['bash', 'zsh', 'fish'] as const;

export type Shell = (typeof shells)[number];

/**
 * The scripts that set up completion in a shell. Each runs `logstrata complete`, which prints one candidate per line, with a description
 * after a tab, or `:files` or `:folders` where the shell is to complete a path. So an upgrade of logstrata needs no new script.
 */
export const completionScripts: Readonly<Record<Shell, string>> = {
  bash: `# bash completion of logstrata, for bash 4 and newer
_logstrata() {
  local line="\${COMP_LINE:0:COMP_POINT}" words last head word about
  read -ra words <<< "$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  last="\${words[-1]}"
  # bash replaces only what stands behind the last of these.
  head=''
  [[ $last == *[=:]* && $COMP_WORDBREAKS == *[=:]* ]] && head="\${last%"\${last##*[=:]}"}"
  COMPREPLY=()
  while IFS=$'\\t' read -r word about; do
    case $word in
      :files) compopt -o default; return ;;
      :folders) compopt -o dirnames; return ;;
      *[=:,] | *__) compopt -o nospace ;;
    esac
    COMPREPLY+=("\${word#"$head"}")
  done < <("\${words[0]}" complete -- "\${words[@]:1}" 2> /dev/null)
}
complete -F _logstrata logstrata
`,
  zsh: `#compdef logstrata
_logstrata() {
  local line word about
  local -a plain open
  while IFS=$'\\t' read -r word about; do
    case $word in
      :files) _files; return ;;
      :folders) _files -/; return ;;
      *[=:,]|*__) open+=("\${word//:/\\\\:}:$about") ;;
      *) plain+=("\${word//:/\\\\:}:$about") ;;
    esac
  done < <("\${(Q)words[1]}" complete -- "\${(@Q)words[2,CURRENT-1]}" "\${(Q)PREFIX}" 2> /dev/null)
  (( $#open )) && _describe -t values logstrata open -S ''
  (( $#plain )) && _describe -t values logstrata plain
}
if [ "$funcstack[1]" = _logstrata ]; then _logstrata; else compdef _logstrata logstrata; fi
`,
  fish: `# fish completion of logstrata
function __logstrata_complete
    set -l words (commandline -opc)
    set -l last (commandline -ct)
    set -l lines ($words[1] complete -- $words[2..-1] "$last" 2>/dev/null)
    switch "$lines[1]"
        case :files
            __fish_complete_path "$last"
        case :folders
            __fish_complete_directories "$last"
        case '*'
            printf '%s\\n' $lines
    end
end
complete -c logstrata -f -a '(__logstrata_complete)'
`,
};
