# Completions for bash: source <(spektacular completions bash)
_spektacular() {
    local words=() last=-1 word line
    # demo:name comes as three words.
    for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
        if ((last >= 0)) && [[ $word == : || ${words[last]} == *: ]]; then
            words[last]+=$word
        else
            words[++last]=$word
        fi
    done
    local cur=${words[last]}
    # --flag=value comes as three words.
    [[ $cur == = ]] && cur=
    local before=${cur%"${cur##*:}"}
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
        :files) compopt -o filenames 2>/dev/null; IFS=$'\n' COMPREPLY=($(compgen -f -- "$cur")) ;;
        :folders) compopt -o filenames 2>/dev/null; IFS=$'\n' COMPREPLY=($(compgen -d -- "$cur")) ;;
        *) line=${line%%$'\t'*}; COMPREPLY+=("${line#"$before"}") ;;
        esac
    done < <(spektacular __complete ".$cur" "${words[@]:0:last}" 2>/dev/null)
}
complete -F _spektacular spektacular
