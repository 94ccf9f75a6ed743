#compdef spektacular
# Completions for zsh: a file named _spektacular in a folder of fpath.
_spektacular() {
    local line
    local -a found
    for line in "${(@f)$(spektacular __complete ".${(Q)PREFIX}" "${(@Q)words[2,CURRENT-1]}" 2>/dev/null)}"; do
        case $line in
        :files) compset -P '--*='; _files ;;
        :folders) compset -P '--*='; _files -/ ;;
        ?*) found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
        esac
    done
    (($#found)) && _describe 'word' found
}
if [ "$funcstack[1]" = "_spektacular" ]; then
    _spektacular "$@"
else
    compdef _spektacular spektacular
fi
