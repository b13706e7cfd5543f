/**
 * What each shell has to be told. All knowledge stands in `sandglass complete`, which is given the words and prints candidates, one a line;
 * a first line `:files` says that files of this machine may stand there too.
 */

/**
 * bash splits words at `:` and `=` too, so they are put together again where no space stood between, and from candidates that is taken away
 * which stands before the last of them. A directory gets no space behind it.
 */
const BASH = `# bash completion of sandglass: source <(sandglass completion bash)
_sandglass() {
  local rest=\${COMP_LINE:0:COMP_POINT} words=() part blank i
  for ((i = 0; i <= COMP_CWORD; i++)); do
    part=\${COMP_WORDS[i]}
    blank=\${rest%%[![:space:]]*}
    rest=\${rest#"$blank"}
    [[ $rest == "$part"* ]] || part=$rest
    rest=\${rest#"$part"}
    if [[ -n $blank || \${#words[@]} -eq 0 ]]; then words+=("$part"); else words[-1]+=$part; fi
  done
  local current=\${words[-1]} lines=() line
  mapfile -t lines < <("\${words[0]}" complete -- "\${words[@]:1}" 2>/dev/null)
  if [[ \${lines[0]} == :files ]]; then
    lines=("\${lines[@]:1}")
    while IFS= read -r line; do
      [[ -d $line ]] && line+=/
      lines+=("$line")
    done < <(compgen -f -- "$current")
  fi
  COMPREPLY=()
  local before=
  [[ $current == *[:=]* ]] && before=\${current%"\${current##*[:=]}"}
  for line in "\${lines[@]}"; do
    printf -v line %q "\${line#"$before"}"
    COMPREPLY+=("$line")
  done
  [[ \${#COMPREPLY[@]} -eq 1 && \${COMPREPLY[0]} == *[/:=] ]] && compopt -o nospace 2>/dev/null
}
complete -F _sandglass sandglass ./sandglass
`

const ZSH = `#compdef sandglass
# zsh completion of sandglass: source <(sandglass completion zsh), after compinit
_sandglass() {
  local -a lines closed open
  lines=("\${(@f)$("\${words[1]}" complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ \${lines[1]} == :files ]]; then
    _files
    shift lines
  fi
  open=(\${(M)lines:#*[/:=]})
  closed=(\${lines:#*[/:=]})
  (( \${#closed} )) && compadd -- "\${closed[@]}"
  (( \${#open} )) && compadd -S '' -- "\${open[@]}"
}
compdef _sandglass sandglass ./sandglass
`

const FISH = `# fish completion of sandglass: sandglass completion fish | source
function __sandglass_complete
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  for line in ($words[1] complete -- $words[2..-1] "$current" 2>/dev/null)
    if test "$line" = :files
      __fish_complete_path "$current"
    else
      echo $line
    end
  end
end
complete -c sandglass -f -a '(__sandglass_complete)'
`

export const SCRIPTS = { bash: BASH, zsh: ZSH, fish: FISH } as const
